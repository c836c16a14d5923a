"""The text side of a model folder: token ids, the bytes of each token, the chat template."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from flare_runtime.errors import ModelError, first_line
from flare_runtime.language_model import Message
from flare_runtime.language_model.chat_template import ChatTemplate
from flare_runtime.language_model.vocabulary import vocabulary_bytes
from flare_runtime.model_store import read_json


class ChatTokenizer:
    """What every engine shares: it reads the same files, so it gives the same ids.

    ``stop_ids``: end-of-sequence ids, and every control token: none of them is answer text.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """Read the text side of a model folder.

        Raises:
            ModelError: there is no ``tokenizer.json``, or a file is damaged.
        """
        specification = _read_specification(folder, name)
        self._tokenizer = _open_tokenizer(specification, folder)
        self._token_bytes = vocabulary_bytes(json.loads(specification))
        special = [
            token
            for token in self._tokenizer.get_added_tokens_decoder().items()
            if token[1].special
        ]
        self.control_tokens = tuple(token.content for _, token in special)
        self.stop_ids = frozenset([index for index, _ in special]) | _end_ids(folder)
        settings = read_json(folder / "tokenizer_config.json")
        tokens = read_json(folder / "special_tokens_map.json") | settings
        self._template = ChatTemplate(_read_template(folder, settings), _named(tokens), name)

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of ``text``; control tokens are recognised, none is added."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def token_bytes(self, token_id: int) -> bytes:
        """What the token adds to the text; nothing for ids beyond the vocabulary."""
        return self._token_bytes[token_id] if token_id < len(self._token_bytes) else b""

    def render(self, messages: Sequence[Message]) -> str:
        """Apply the chat template, up to where the assistant's answer begins.

        Raises:
            ModelError: the template does not take these roles in this order.
        """
        return self._template.render(messages)


def context_window(config: Mapping[str, Any], name: str) -> int:
    """Most tokens that a sequence may have, by the model's configuration.

    Raises:
        ModelError: it does not say.
    """
    for key in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
        if length := config.get(key):
            return int(length)
    raise ModelError(
        f"the model {name!r} does not say how long its context may be; "
        "set max_position_embeddings in its config.json"
    )


def _read_specification(folder: Path, name: str) -> str:
    path = folder / "tokenizer.json"
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(
            f"the model {name!r} needs a fast tokenizer (tokenizer.json), {folder} has none that "
            "can be read; pull it again or name another folder"
        ) from error


def _open_tokenizer(specification: str, folder: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_str(specification)
    except Exception as error:  # the library raises nothing narrower
        raise ModelError(
            f"cannot read {folder / 'tokenizer.json'}: {first_line(error)}; pull the model again"
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _end_ids(folder: Path) -> frozenset[int]:
    for file in ("generation_config.json", "config.json"):
        end = read_json(folder / file).get("eos_token_id")
        if end is not None:
            return frozenset(end if isinstance(end, list) else [end])
    return frozenset()


def _read_template(folder: Path, settings: Mapping[str, Any]) -> str | None:
    """A file of its own wins over the tokenizer's settings, where several may have names."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {entry["name"]: str(entry["template"]) for entry in template}
        return named.get("default")
    return None if template is None else str(template)


def _named(settings: Mapping[str, Any]) -> dict[str, str]:
    """Texts of the special tokens that have a name, as templates use them."""
    tokens = {}
    for key, value in settings.items():
        text = value.get("content") if isinstance(value, dict) else value
        if key.endswith("_token") and isinstance(text, str):
            tokens[key] = text
    return tokens
