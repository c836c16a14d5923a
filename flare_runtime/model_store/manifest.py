"""The note that a pulled model folder is whole, and of what it was made: ``flare-model.json``."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from flare_runtime.errors import ModelError
from flare_runtime.model_store.registry import Kind, ModelEntry

MANIFEST_NAME = "flare-model.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class ModelManifest:
    """What a pulled folder holds. Written last, so a folder that has one is whole."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    format: int
    name: str
    kind: Kind
    license: str
    source_sha256: str
    """Hash of the weights as published, before any conversion."""
    packages: tuple[str, ...]
    """Where the bytes came from, as ``name==version``."""
    files: dict[str, int]
    """Size in bytes of every file, by path."""


def read_manifest(folder: Path) -> ModelManifest | None:
    """Read a model folder's manifest; None when it has none, as a hand-made folder.

    Raises:
        ModelError: the manifest is damaged.
    """
    path = folder / MANIFEST_NAME
    try:
        return TypeAdapter(ModelManifest).validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError) as error:
        raise ModelError(f"{path} is damaged; pull the model again") from error


def write_manifest(folder: Path, entry: ModelEntry, packages: tuple[str, ...]) -> None:
    """Take stock of a finished folder."""
    manifest = ModelManifest(
        *(FORMAT, entry.name, entry.kind, entry.license, entry.source_sha256, packages),
        file_sizes(folder),
    )
    content = json.dumps(asdict(manifest), indent=2) + "\n"
    (folder / MANIFEST_NAME).write_text(content, encoding="utf-8")


def file_sizes(folder: Path) -> dict[str, int]:
    """Size in bytes of every file in a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def is_complete(folder: Path, entry: ModelEntry) -> bool:
    """Say whether the folder holds this very entry with every file at its full size."""
    try:
        manifest = read_manifest(folder)
    except ModelError:
        return False
    return (
        manifest is not None
        and manifest.source_sha256 == entry.source_sha256
        and all(_size(folder / path) == size for path, size in manifest.files.items())
    )


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None
