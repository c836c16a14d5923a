"""A tiny real transformers model, made in the test run: random weights, bytes for tokens."""

from pathlib import Path

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from flare_runtime.language_model.transformers import TransformersModel

TEMPLATE = (
    "{% for m in messages %}<|turn|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)


def byte_tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken("<|turn|>"), AddedToken("<|end|>")])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|end|>")
    tokenizer.chat_template = TEMPLATE
    return tokenizer


@pytest.fixture(scope="session")
def tiny_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(7)
    folder = tmp_path_factory.mktemp("tiny-llama")
    config = LlamaConfig(
        vocab_size=258,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=256,
        eos_token_id=257,
        bos_token_id=256,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model(tiny_model_folder: Path) -> TransformersModel:
    return TransformersModel.load(tiny_model_folder, name="tiny", threads=1)
