"""The index folder: whole generations, switched atomically, checked on opening.

INDEX/CURRENT             name of the live generation
INDEX/gen-0007-1a2b3c4d/  manifest.json, passages.jsonl, vectors.npy, files of both searches
INDEX/next/               what a run is writing, and what a killed run left for the next
INDEX/lock                held while a run writes

The name ends in digits of the manifest's SHA-256: CURRENT vouches for it, and it for the rest.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from flare_runtime.errors import CorpusIndexError
from flare_runtime.retrieval.manifest import (
    MANIFEST_FILE,
    Checksum,
    Manifest,
    checksum,
    read_manifest,
    write_manifest,
)

PASSAGES_FILE = "passages.jsonl"
VECTORS_FILE = "vectors.npy"

_CURRENT = "CURRENT"
_NEXT = "next"
_LOCK = "lock"
_GENERATION = re.compile(r"gen-\d{4,}-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Generation:
    """One complete state of an index. ``folder`` holds its files."""

    folder: Path
    manifest: Manifest


def has_index(index: Path) -> bool:
    """Whether a run has ever ended well in ``index``."""
    return (index / _CURRENT).exists()


def is_live(index: Path, generation: Generation) -> bool:
    """Whether ``generation`` is still the one that readers should open."""
    return _live_name(index) == generation.folder.name


def open_generation(index: Path) -> Generation:
    """Find the live generation and verify every file of it.

    Raises:
        CorpusIndexError: there is no index, or a file is missing, truncated or altered.

    """
    name = _live_name(index)
    try:
        return _open_named(index, name)
    except CorpusIndexError:
        # A run may have switched and tidied up between the two looks.
        if _live_name(index) == name:
            raise
        return open_generation(index)


@contextmanager
def lock_index(index: Path) -> Iterator[None]:
    """Hold the right to write ``index``, which is created if need be.

    Raises:
        CorpusIndexError: another process holds it, or ``index`` is something else than an index.

    """
    _prepare(index)
    with (index / _LOCK).open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            raise CorpusIndexError(
                f"index {index} is being written by process {file.read().strip() or 'unknown'};"
                " wait until it has ended"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def work_folder(index: Path) -> Path:
    """Return the folder for what should outlive a killed run; the next success removes it."""
    (index / _NEXT).mkdir(exist_ok=True)
    return index / _NEXT


def publish(index: Path, fill: Callable[[Path], Manifest]) -> Generation:
    """Have ``fill`` write a generation into an empty folder, then make it the live one.

    Whatever stops this half-way, even a power cut, leaves the former generation live and whole.
    The caller holds the lock. ``fill`` returns the manifest; checksums are added here.
    """
    draft = work_folder(index) / "generation"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    manifest = fill(draft)
    checksums = {path.name: checksum(path) for path in sorted(draft.iterdir())}
    manifest = replace(manifest, checksums=checksums)
    write_manifest(draft, manifest)
    for path in (*draft.iterdir(), draft):
        _sync(path)
    number = 1 + max((int(name.split("-")[1]) for name in _generations(index)), default=0)
    folder = index / f"gen-{number:04}-{checksum(draft / MANIFEST_FILE).sha256[:8]}"
    draft.rename(folder)
    _switch(index, folder.name)
    _tidy(index, folder.name)
    return Generation(folder, manifest)


def _remedy(index: Path) -> str:
    return f"run `flare index DIR... -o {index}` again"


def _live_name(index: Path) -> str:
    if not index.exists():
        raise CorpusIndexError(f"no index at {index}; run `flare index DIR... -o {index}`")
    try:
        name = (index / _CURRENT).read_text(encoding="ascii").strip()
    except OSError as error:
        raise CorpusIndexError(
            f"not an index: {index} has no readable file {_CURRENT}; {_remedy(index)}"
        ) from error
    except UnicodeDecodeError:
        name = ""
    if not _GENERATION.fullmatch(name):
        raise CorpusIndexError(f"{index / _CURRENT} is damaged; {_remedy(index)}")
    return name


def _open_named(index: Path, name: str) -> Generation:
    folder, remedy = index / name, _remedy(index)
    manifest = read_manifest(folder, remedy)
    if checksum(folder / MANIFEST_FILE).sha256[:8] != name[-8:]:
        raise CorpusIndexError(f"{folder / MANIFEST_FILE} was altered; {remedy}")
    for file, expected in manifest.checksums.items():
        _verify(folder / file, expected, remedy)
    return Generation(folder, manifest)


def _verify(path: Path, expected: Checksum, remedy: str) -> None:
    if not path.is_file():
        raise CorpusIndexError(f"index file is missing: {path}; {remedy}")
    size = path.stat().st_size
    if size != expected.size:
        raise CorpusIndexError(
            f"index file must have {expected.size} bytes, has {size}: {path}; {remedy}"
        )
    try:
        found = checksum(path)
    except OSError as error:
        raise CorpusIndexError(f"cannot read {path}: {error.strerror}; {remedy}") from error
    if found != expected:
        raise CorpusIndexError(f"index file was altered: {path}; {remedy}")


def _prepare(index: Path) -> None:
    if index.exists() and not index.is_dir():
        raise CorpusIndexError(f"the index must be a folder, was a file: {index}")
    try:
        index.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CorpusIndexError(
            f"cannot make the folder for the index, {index}: {error.strerror}; name another place"
        ) from error
    names = {path.name for path in index.iterdir()}
    if names and not names & {_CURRENT, _LOCK}:
        raise CorpusIndexError(
            f"the folder for the index holds other files: {index}; give an empty or new folder"
        )


def _generations(index: Path) -> tuple[str, ...]:
    return tuple(path.name for path in index.iterdir() if _GENERATION.fullmatch(path.name))


def _switch(index: Path, name: str) -> None:
    draft = work_folder(index) / _CURRENT
    draft.write_text(name + "\n", encoding="ascii")
    _sync(draft)
    _sync(index)
    draft.replace(index / _CURRENT)
    _sync(index)


def _tidy(index: Path, live: str) -> None:
    for name in (*_generations(index), _NEXT):
        if name != live:
            shutil.rmtree(index / name, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
