"""Nearest passages by cosine: the one door to faiss."""

from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from flare_runtime.errors import CorpusIndexError

FLAT_LIMIT = 50_000
"""Up to so many passages every vector is compared; above, a graph (HNSW) is searched."""
GRAPH_DEGREE = 32
EF_CONSTRUCTION = 200
EF_SEARCH = 768
"""Nodes kept in view while searching the graph: recall@10 over .97 on 100 000 vectors even where
true neighbours are few (5 a cluster: 128 gives .79, 256 .87, 512 .95, 768 .98 at 8.5 ms)."""
GRAPH_FILE = "dense.faiss"


class DenseIndex:
    """Cosine search over passage vectors, flat up to ``FLAT_LIMIT`` passages and HNSW above.

    HNSW: Malkov and Yashunin, arXiv 1603.09320. Vectors are normalised on the way in and queries
    on the way to search, so a score is a cosine whatever the lengths were.
    """

    def __init__(self, index: Any, num_vectors: int) -> None:  # noqa: ANN401
        self._index = index
        self._num_vectors = num_vectors

    @property
    def num_vectors(self) -> int:
        """How many vectors can be found."""
        return self._num_vectors

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self._index.d)

    @classmethod
    def build(cls, vectors: NDArray[np.float32], flat_limit: int = FLAT_LIMIT) -> "DenseIndex":
        """Index ``vectors``; row numbers are the ids. *Shape:* ``[N, D]``.

        The graph is built on one thread: with more, its links depend on timing.

        Raises:
            CorpusIndexError: vectors are not a matrix of finite numbers.

        """
        units = _unit_rows(vectors)
        num_vectors, dimension = units.shape
        index: Any
        if num_vectors <= flat_limit:
            index = faiss.IndexFlatIP(dimension)
        else:
            index = faiss.IndexHNSWFlat(dimension, GRAPH_DEGREE, faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction = EF_CONSTRUCTION
            index.hnsw.efSearch = EF_SEARCH
        if num_vectors:
            faiss.omp_set_num_threads(1)
            index.add(units)
        return cls(index, num_vectors)

    def save(self, folder: Path) -> None:
        """Write the graph to ``folder``; a flat index needs no file beside the vectors."""
        if isinstance(self._index, faiss.IndexHNSWFlat):
            faiss.write_index(self._index, str(folder / GRAPH_FILE))

    @classmethod
    def load(cls, folder: Path, vectors: NDArray[np.float32]) -> "DenseIndex":
        """Open what ``save`` left in ``folder``; without a graph, build from ``vectors``.

        Raises:
            CorpusIndexError: the graph cannot be read, or belongs to other vectors.

        """
        path = folder / GRAPH_FILE
        if not path.is_file():
            return cls.build(vectors)
        index: Any
        try:
            index = faiss.read_index(str(path))
        except RuntimeError as error:
            raise CorpusIndexError(f"cannot read {path}: build the index again") from error
        if (index.ntotal, index.d) != vectors.shape:
            raise CorpusIndexError(
                f"{path} is of {index.ntotal} vectors of {index.d}, the index holds"
                f" {vectors.shape}: build the index again"
            )
        index.hnsw.efSearch = EF_SEARCH
        return cls(index, index.ntotal)

    def search(self, vector: NDArray[np.float32], k: int) -> tuple[tuple[int, float], ...]:
        """Return at most ``k`` (row, cosine), best first, ties by row. *Shape of vector:* ``[D]``.

        Raises:
            CorpusIndexError: the vector is not finite or has another length than the index's.

        """
        if not self._num_vectors or k < 1:
            return ()
        query = _unit_rows(np.reshape(vector, (1, -1)))
        if query.shape[1] != self._index.d:
            raise CorpusIndexError(
                f"the index has vectors of {self._index.d}, the query {query.shape[1]}:"
                " search with the embedder that built it"
            )
        faiss.omp_set_num_threads(1)
        scores, rows = self._index.search(query, min(k, self._num_vectors))
        # faiss pads with row -1 where a graph search found less than asked for.
        found = [(int(r), float(s)) for r, s in zip(rows[0], scores[0], strict=True) if r >= 0]
        return tuple(sorted(found, key=lambda hit: (-hit[1], hit[0])))


def _unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Copy with rows of length 1; a row of zeros stays, and is at right angles to everything."""
    if vectors.ndim != 2:
        raise CorpusIndexError(f"vectors must form a matrix, was: shape {vectors.shape}")
    rows = np.array(vectors, dtype=np.float32, order="C")
    if not np.isfinite(rows).all():
        raise CorpusIndexError("vectors must be finite: embed the passages again")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows
