"""An index opened for search: its passages, and both ways of finding them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flare_runtime.errors import CorpusIndexError
from flare_runtime.retrieval.corpus import read_passages
from flare_runtime.retrieval.dense import DenseIndex
from flare_runtime.retrieval.sparse import SparseIndex
from flare_runtime.retrieval.storage import (
    PASSAGES_FILE,
    VECTORS_FILE,
    Generation,
    is_live,
    open_generation,
)
from flare_runtime.types import Passage

MAX_TRIES = 3
"""Runs that may replace an index while it is being opened."""


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """Passages with their dense and sparse index; a row of either is a place in ``passages``."""

    passages: tuple[Passage, ...]
    dense: DenseIndex
    sparse: SparseIndex
    embedder: str = ""
    """Name of the model that made the vectors."""

    @property
    def has_one_source(self) -> bool:
        """True when all passages come from one document."""
        sources = iter(passage.source for passage in self.passages)
        first = next(sources, None)
        return all(source == first for source in sources)


def open_search_index(index: Path) -> SearchIndex:
    """Open the live generation of ``index``; once more if a run replaces it meanwhile.

    Raises:
        CorpusIndexError: the index is missing or damaged.

    """
    for _ in range(MAX_TRIES - 1):
        generation = open_generation(index)
        try:
            return _open(generation)
        except (CorpusIndexError, OSError):
            if is_live(index, generation):
                raise
    return _open(open_generation(index))


def _open(generation: Generation) -> SearchIndex:
    folder = generation.folder
    passages = read_passages(folder / PASSAGES_FILE)
    try:
        vectors = np.load(folder / VECTORS_FILE, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise CorpusIndexError(f"cannot read {folder / VECTORS_FILE}: index again") from error
    dense = DenseIndex.load(folder, vectors)
    sparse = SparseIndex.load(folder)
    sizes = {len(passages), dense.num_vectors, sparse.num_passages}
    if len(sizes) > 1:
        raise CorpusIndexError(
            f"the index holds {len(passages)} passages, {dense.num_vectors} vectors and"
            f" {sparse.num_passages} word entries: index again"
        )
    return SearchIndex(passages, dense, sparse, generation.manifest.embedder)
