"""The text side of a model folder against transformers' tokenizers."""

import json
import shutil
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from flare_runtime.errors import ModelError
from flare_runtime.language_model import Message
from flare_runtime.language_model.tokenizer import ChatTokenizer, context_window
from flare_runtime.model_store import resolve_model

TEXTS = [
    "",
    " ",
    "The pump must be primed.\n\n- `v1.2.3` costs $3.50\t(see §4)\r\n",
    "Größe: 3 µm — 検査 🦊🏽‍🚀 e\u0301 \u200b\ufeff",
    "<|im_start|>user\nhi<|im_end|> <|endoftext|>",
    "a" * 5000,
    "".join(map(chr, range(1, 128))),
]


@pytest.fixture
def folder(tiny_model_folder: Path, tmp_path: Path) -> Path:
    """A copy whose text side may be changed."""
    return shutil.copytree(tiny_model_folder, tmp_path / "model")


@pytest.mark.real_model
def test_a_real_tokenizer_gives_the_ids_and_prompts_of_transformers() -> None:
    source = resolve_model("smollm2-135m", "generator")
    ours, theirs = ChatTokenizer(source, "m"), AutoTokenizer.from_pretrained(source)
    for text in TEXTS:
        ids = ours.encode(text)
        assert ids == tuple(theirs.encode(text, add_special_tokens=False))
        decoded = theirs.decode(ids, skip_special_tokens=True)
        assert b"".join(map(ours.token_bytes, ids)).decode() == decoded
    for messages in ([Message("user", "Why?")], [Message("system", "s"), Message("user", " u ")]):
        conversation = [{"role": m.role, "content": m.content} for m in messages]
        assert ours.render(messages) == theirs.apply_chat_template(
            conversation, tokenize=False, add_generation_prompt=True
        )
    assert ours.stop_ids >= set(theirs.all_special_ids)


def test_ctx_006_one_beginning_of_text(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.bos_token = "<|turn|>"
    tokenizer.add_bos_token = True
    tokenizer.save_pretrained(folder)
    ours = ChatTokenizer(folder, "bos")
    assert ours.encode(ours.render([Message("user", "hi")])).count(256) == 2  # two turns, no more
    assert 256 not in ours.encode("resumed text")


def test_saved_padding_and_truncation_do_not_apply(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inner = tokenizer.backend_tokenizer
    inner.enable_truncation(4)
    inner.enable_padding(length=32)
    inner.save(str(folder / "tokenizer.json"))
    assert len(ChatTokenizer(folder, "m").encode("twelve bytes")) == 12


def test_a_named_template_is_found_among_several(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["chat_template"] = [
        {"name": "tool_use", "template": "wrong"},
        {"name": "default", "template": "{{ messages[0].content }}{{ eos_token }}"},
    ]
    settings["eos_token"] = {"content": "<|end|>", "special": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    assert ChatTokenizer(folder, "m").render([Message("user", "hi")]) == "hi<|end|>"


def test_a_model_without_template_gets_a_plain_one(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    text = ChatTokenizer(folder, "base").render([Message("user", "Why?")])
    assert text == "user: Why?\n\nassistant:"


@pytest.mark.parametrize(("end", "ids"), [(5, {5}), ([5, 7], {5, 7}), (None, {9})])
def test_answers_stop_where_generation_config_says(
    folder: Path, end: int | list[int] | None, ids: set[int]
) -> None:
    """Its file wins over config.json, which speaks where it is silent; control tokens stop too."""
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": end}))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"eos_token_id": 9}))
    assert ChatTokenizer(folder, "m").stop_ids == {256, 257} | ids


def test_a_folder_without_tokenizer_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"'m' needs a fast tokenizer \(tokenizer.json\)"):
        ChatTokenizer(folder, "m")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": {}}'])
def test_a_damaged_tokenizer_is_refused(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError, match="cannot read .*tokenizer.json.*pull the model again"):
        ChatTokenizer(folder, "m")


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_damaged_settings_are_refused(folder: Path, content: str) -> None:
    (folder / "tokenizer_config.json").write_text(content)
    with pytest.raises(ModelError, match="tokenizer_config.json"):
        ChatTokenizer(folder, "m")


def test_a_model_must_say_how_long_its_context_is() -> None:
    assert context_window({"n_positions": 64}, "m") == 64
    with pytest.raises(ModelError, match="'m' does not say how long its context may be"):
        context_window({"model_type": "bloom"}, "m")
