"""The manifest of an index: what it was made from, and the checksum of each of its files."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from flare_runtime.errors import CorpusIndexError
from flare_runtime.retrieval.documents import Skipped

FORMAT = 1
"""Of the index folder. Raised when an older reader would misread a newer index."""
MANIFEST_FILE = "manifest.json"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A document as it was read: its checksum and what came of it.

    ``reason`` says why a file gave no passages, and is "" for all others.
    """

    sha256: str
    passage_ids: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Checksum:
    """Size in bytes and SHA-256 of a file of the index."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index knows about itself. ``created`` is ISO 8601 in UTC."""

    embedder: str
    dimension: int
    chunk_tokens: int
    reader_version: int
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    created: str = ""
    checksums: Mapping[str, Checksum] = field(default_factory=dict)
    format: int = FORMAT


_MANIFEST = TypeAdapter(Manifest)


@dataclass(frozen=True, slots=True)
class _FormatOnly:
    """The one field that every format of the manifest has."""

    format: int


_FORMAT_ONLY = TypeAdapter(_FormatOnly)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a generation."""
    (folder / MANIFEST_FILE).write_bytes(_MANIFEST.dump_json(manifest, indent=1) + b"\n")


def read_manifest(folder: Path, remedy: str) -> Manifest:
    """Read the manifest of a generation; ``remedy`` ends every complaint.

    Raises:
        CorpusIndexError: missing, unreadable, or of another format.

    """
    path = folder / MANIFEST_FILE
    try:
        data = path.read_bytes()
        version = _FORMAT_ONLY.validate_json(data).format
        if version != FORMAT:
            raise CorpusIndexError(f"index format must be {FORMAT}, was: {version}; {remedy}")
        return _MANIFEST.validate_json(data)
    except OSError as error:
        raise CorpusIndexError(f"cannot read {path}: {error.strerror}; {remedy}") from error
    except ValidationError as error:
        raise CorpusIndexError(f"{path} is damaged; {remedy}") from error


def checksum(path: Path) -> Checksum:
    """Compute size and SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Checksum(path.stat().st_size, digest)
