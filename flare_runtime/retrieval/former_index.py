"""What the index already there can lend to the next: passages of unchanged files, and vectors."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from flare_runtime.errors import CorpusIndexError
from flare_runtime.retrieval.corpus import indexed_text, read_passages
from flare_runtime.retrieval.manifest import FileRecord, Manifest
from flare_runtime.retrieval.storage import (
    PASSAGES_FILE,
    VECTORS_FILE,
    Generation,
    has_index,
    open_generation,
)
from flare_runtime.types import Passage


@dataclass(frozen=True, slots=True)
class FormerIndex:
    """Files and passages by source, vectors by the text they stand for.

    ``vectors``: *Shape:* ``[N, D]``; ``rows`` maps an indexed text to its row.
    """

    files: Mapping[str, FileRecord]
    passages: Mapping[str, tuple[Passage, ...]]
    vectors: NDArray[np.float32]
    rows: Mapping[str, int]


NOTHING_FORMER = FormerIndex({}, {}, np.empty((0, 0), dtype=np.float32), {})


def open_former(index: Path, wanted: Manifest) -> tuple[FormerIndex, tuple[str, ...]]:
    """Open what can be carried over from ``index``, and warnings.

    That is nothing without an index, if it is damaged (a warning says so), or if it was made in
    another way than ``wanted`` tells.
    """
    if not has_index(index):
        return NOTHING_FORMER, ()
    try:
        former = open_generation(index)
    except CorpusIndexError as error:
        return NOTHING_FORMER, (f"index built from scratch, the former is unusable: {error}",)
    if _recipe(former.manifest) != _recipe(wanted):
        return NOTHING_FORMER, ()
    return _load(former), ()


def _recipe(manifest: Manifest) -> tuple[str, int, int, int]:
    return (
        manifest.embedder,
        manifest.dimension,
        manifest.chunk_tokens,
        manifest.reader_version,
    )


def _load(former: Generation) -> FormerIndex:
    passages = read_passages(former.folder / PASSAGES_FILE)
    vectors = np.load(former.folder / VECTORS_FILE, mmap_mode="r")
    rows = {indexed_text(passage): row for row, passage in enumerate(passages)}
    return FormerIndex(former.manifest.files, _by_source(passages), vectors, rows)


def _by_source(passages: Iterable[Passage]) -> dict[str, tuple[Passage, ...]]:
    found: dict[str, list[Passage]] = {}
    for passage in passages:
        found.setdefault(passage.source, []).append(passage)
    return {source: tuple(own) for source, own in found.items()}
