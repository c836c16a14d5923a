import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    MambaConfig,
    MambaForCausalLM,
)

from flare_runtime.errors import ModelError
from flare_runtime.language_model.transformers import TransformersModel

IDS = [72, 101, 108, 108, 111, 9, 200]


def test_hooks_equal_output_hidden_states(
    tiny_model: TransformersModel, tiny_model_folder: Path
) -> None:
    reference = AutoModelForCausalLM.from_pretrained(tiny_model_folder).eval()
    with torch.inference_mode():
        wanted = reference(torch.tensor([IDS]), output_hidden_states=True)
    layers = (3, 0, 2, 1)
    output = tiny_model.forward(IDS, tiny_model.new_cache(), layers)
    assert output.hidden is not None
    assert output.hidden.shape == (len(IDS), 4, 32)
    for column, layer in enumerate(layers):
        np.testing.assert_allclose(
            output.hidden[:, column], wanted.hidden_states[layer][0].numpy(), atol=1e-5
        )
    np.testing.assert_allclose(output.logits[-1], wanted.logits[0, -1].numpy(), atol=1e-5)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_an_incomplete_folder_is_a_model_error(
    tiny_model_folder: Path, tmp_path: Path, missing: str
) -> None:
    folder = shutil.copytree(tiny_model_folder, tmp_path / "broken")
    (folder / missing).unlink()
    with pytest.raises(ModelError, match="cannot load the model 'broken'"):
        TransformersModel.load(folder, name="broken", threads=1)


def test_kv_006_caches_that_cannot_be_cropped_are_refused(
    tiny_model_folder: Path, tmp_path: Path
) -> None:
    """A window that has dropped entries cannot give them back, so such models never start."""
    folder = shutil.copytree(tiny_model_folder, tmp_path / "sliding")
    config = json.loads((folder / "config.json").read_text())
    config.update(
        model_type="qwen2",
        architectures=["Qwen2ForCausalLM"],
        use_sliding_window=True,
        sliding_window=4,
        max_window_layers=1,
    )
    config.pop("layer_types", None)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="full attention in every layer.*sliding_attention"):
        TransformersModel.load(folder, name="sliding", threads=1)


@pytest.mark.parametrize("kind", ["gpt2", "mamba"])
def test_other_architectures_run_or_are_refused(
    tiny_model_folder: Path, tmp_path: Path, kind: str
) -> None:
    folder = shutil.copytree(tiny_model_folder, tmp_path / kind)
    (folder / "config.json").unlink()
    if kind == "gpt2":
        config = GPT2Config(
            vocab_size=258, n_embd=32, n_layer=2, n_head=2, n_positions=64, eos_token_id=257
        )
        reference = GPT2LMHeadModel(config).eval()
        reference.save_pretrained(folder)
        model = TransformersModel.load(folder, name=kind, threads=1)
        output = model.forward(IDS, model.new_cache(), (1, 2))
        with torch.inference_mode():
            wanted = reference(torch.tensor([IDS]), output_hidden_states=True)
        np.testing.assert_allclose(
            output.hidden[:, 0], wanted.hidden_states[1][0].numpy(), atol=1e-5
        )
        np.testing.assert_allclose(
            output.hidden[:, 1], wanted.hidden_states[2][0].numpy(), atol=1e-5
        )
    else:
        config = MambaConfig(vocab_size=258, hidden_size=32, num_hidden_layers=2, state_size=4)
        MambaForCausalLM(config).save_pretrained(folder)
        with pytest.raises(ModelError):
            TransformersModel.load(folder, name=kind, threads=1)


def test_a_truncated_weight_file_is_a_model_error(tiny_model_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_model_folder, tmp_path / "cut")
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ModelError, match="cannot load the model 'cut'"):
        TransformersModel.load(folder, name="cut", threads=1)
