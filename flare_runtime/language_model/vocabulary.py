"""What bytes each token stands for, read from a ``tokenizer.json``."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from flare_runtime.errors import ModelError

BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
WORD_MARK = "\u2581"


@cache
def _byte_of_character() -> dict[str, int]:
    """Undo GPT-2's mapping of bytes to printable characters.

    Printable Latin-1 stands for itself; the other bytes take the code points from 256 on, in order
    (Radford et al. 2019, byte-level BPE).
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(256 + index): byte for index, byte in enumerate(others)})
    return table


def _byte_level(token: str) -> bytes:
    table = _byte_of_character()
    return b"".join(
        bytes([table[char]]) if char in table else char.encode("utf-8") for char in token
    )


def _word_mark(token: str) -> bytes:
    match = BYTE_TOKEN.fullmatch(token)
    if match:
        return bytes([int(match[1], 16)])
    return token.replace(WORD_MARK, " ").encode("utf-8")


def _decoder_types(decoder: Mapping[str, Any] | None) -> set[str]:
    if not decoder:
        return set()
    if decoder["type"] == "Sequence":
        return set().union(*(_decoder_types(part) for part in decoder["decoders"]))
    return {str(decoder["type"])}


def vocabulary_bytes(tokenizer: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Bytes of every token, by id; control tokens are empty.

    Args:
        tokenizer: the content of a ``tokenizer.json``.

    Raises:
        ModelError: the tokenizer's decoder is neither byte-level nor word-mark.
    """
    kinds = _decoder_types(tokenizer.get("decoder"))
    if "ByteLevel" in kinds:
        to_bytes = _byte_level
    elif kinds & {"ByteFallback", "Metaspace", "Replace"}:
        to_bytes = _word_mark
    else:
        raise ModelError(
            "the tokenizer must decode by bytes (byte-level or byte-fallback), its decoder was: "
            f"{sorted(kinds) or 'none'}; use a generator with such a tokenizer"
        )
    added = {entry["id"]: entry for entry in tokenizer.get("added_tokens", ())}
    by_id = {index: token for token, index in _vocabulary(tokenizer).items()}
    size = max([*by_id, *added], default=-1) + 1
    table = [to_bytes(by_id[index]) if index in by_id else b"" for index in range(size)]
    for index, entry in added.items():
        table[index] = b"" if entry["special"] else entry["content"].encode("utf-8")
    return tuple(table)


def _vocabulary(tokenizer: Mapping[str, Any]) -> dict[str, int]:
    vocabulary = tokenizer["model"]["vocab"]
    if isinstance(vocabulary, dict):
        return vocabulary
    return {entry[0]: index for index, entry in enumerate(vocabulary)}
