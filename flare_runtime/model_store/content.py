"""What a model folder holds, by content: hashes of its weights and of its text side."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flare_runtime.errors import ModelError
from flare_runtime.model_store.manifest import read_manifest

WEIGHTS = ("*.safetensors", "*.bin")
TEXT_FILES = (
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "chat_template.jinja"),
    *("sentence_bert_config.json", "1_Pooling/config.json"),
)
"""All that the runtime reads of a model folder but its weights; most may be missing."""


def read_json(path: Path, remedy: str = "pull the model again") -> dict[str, Any]:
    """Read a JSON object; an absent file gives an empty one.

    Raises:
        ModelError: the file is not a JSON object; ``remedy`` says what to do about it.
    """
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"cannot read {path}: {error}; {remedy}") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path} must hold a JSON object; {remedy}")
    return content


def source_hash(folder: Path) -> str:
    """SHA-256 of a model's weights as published; of those in the folder where nobody says more.

    Raises:
        ModelError: the folder's manifest is damaged.
    """
    manifest = read_manifest(folder)
    return manifest.source_sha256 if manifest else _hash(weight_files(folder))


def text_hash(folder: Path) -> str:
    """SHA-256 of everything but the weights: a mended chat template makes another model."""
    digest = hashlib.sha256()
    for name in TEXT_FILES:
        if (folder / name).is_file():
            digest.update(f"{name}\n".encode() + (folder / name).read_bytes())
    return digest.hexdigest()


def weight_stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change (nanoseconds) of the weights: equal stamps need no hashing."""
    stats = ((path.name, path.stat()) for path in weight_files(folder))
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats}


def weight_files(folder: Path) -> tuple[Path, ...]:
    """Files that hold the weights, by name."""
    return tuple(sorted(path for pattern in WEIGHTS for path in folder.glob(pattern)))


def _hash(files: Iterable[Path]) -> str:
    """One file's own hash; several in one folder by the hash of their hashes."""
    hashes = []
    for path in files:
        with path.open("rb") as stream:
            hashes.append(hashlib.file_digest(stream, "sha256").hexdigest())
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()
