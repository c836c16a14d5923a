"""Passages by the words they share with a query: BM25 as a sparse matrix of ready weights."""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi
from scipy import sparse

from flare_runtime.errors import CorpusIndexError
from flare_runtime.retrieval.analyzer import analyze, analyze_query

WEIGHTS_FILE = "sparse.npz"
VOCABULARY_FILE = "sparse_terms.json"


class _PositiveIdfBM25(BM25Okapi):  # type: ignore[misc]
    """BM25 whose idf is ln(1 + (N - n + .5) / (n + .5)): above 0 however common a term is."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        for term, n in nd.items():
            self.idf[term] = math.log1p((self.corpus_size - n + 0.5) / (n + 0.5))


class SparseIndex:
    """BM25 (k1 = 1.5, b = .75; Robertson and Zaragoza 2009) over analysed passages.

    ``weights`` holds what each term adds to each passage's score, one row a term, so that a query
    is answered by adding up a few rows. *Shape:* ``[terms, N]``.
    """

    def __init__(self, weights: "sparse.csr_array[np.float64]", terms: Sequence[str]) -> None:
        self._weights = weights
        self._terms = tuple(terms)
        self._rows = {term: row for row, term in enumerate(self._terms)}

    @property
    def num_passages(self) -> int:
        """How many passages were indexed, empty ones included."""
        return int(self._weights.shape[1])

    @classmethod
    def build(cls, texts: Iterable[str]) -> "SparseIndex":
        """Index ``texts``; positions are the ids."""
        # Interned, since a list of a million equal strings costs more than the whole index.
        analysed = [[sys.intern(term) for term in analyze(text)] for text in texts]
        if not any(analysed):
            return cls(sparse.csr_array((0, len(analysed)), dtype=np.float64), ())
        statistics = _PositiveIdfBM25(analysed)
        return cls(_weigh(statistics), tuple(statistics.idf))

    def save(self, folder: Path) -> None:
        """Write weights (npz) and vocabulary (JSON) to ``folder``."""
        sparse.save_npz(folder / WEIGHTS_FILE, self._weights, compressed=False)
        (folder / VOCABULARY_FILE).write_text(json.dumps(self._terms), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "SparseIndex":
        """Open what ``save`` left in ``folder``.

        Raises:
            CorpusIndexError: a file is missing, cannot be read, or does not fit the other.

        """
        try:
            # Opened here, since scipy leaves the file open when it is no archive.
            with (folder / WEIGHTS_FILE).open("rb") as file:
                weights = sparse.csr_array(sparse.load_npz(file))
            terms = json.loads((folder / VOCABULARY_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise CorpusIndexError(
                f"cannot read the word index in {folder} ({error}): build the index again"
            ) from error
        if weights.shape[0] != len(terms):
            raise CorpusIndexError(
                f"the word index in {folder} has {len(terms)} terms and {weights.shape[0]} rows:"
                " build the index again"
            )
        return cls(weights, terms)

    def search(self, query: str, k: int) -> tuple[tuple[int, float], ...]:
        """Return at most ``k`` (position, score) with scores above 0, best first, ties by position.

        A term that the query repeats counts as often as it stands there.
        """
        scores = self.scores(query)
        floor = 0.0
        if 0 < k < len(scores):
            # Only what reaches the k-th best score is sorted: common words match half the corpus.
            floor = float(np.partition(scores, len(scores) - k)[len(scores) - k])
        positions = np.flatnonzero((scores > 0.0) & (scores >= floor))
        order = np.argsort(-scores[positions], kind="stable")[: max(k, 0)]
        return tuple((int(at), float(scores[at])) for at in positions[order])

    def scores(self, query: str) -> NDArray[np.float64]:
        """BM25 score of every passage. *Shape:* ``[N]``."""
        scores = np.zeros(self.num_passages, dtype=np.float64)
        matrix = self._weights
        for term, count in Counter(analyze_query(query)).items():
            row = self._rows.get(term)
            if row is not None:
                stretch = slice(matrix.indptr[row], matrix.indptr[row + 1])
                scores[matrix.indices[stretch]] += count * matrix.data[stretch]
        return scores


def _weigh(statistics: BM25Okapi) -> "sparse.csr_array[np.float64]":
    """Turn counts into what each term adds to each passage's score. *Shape:* ``[terms, N]``."""
    counts: list[dict[str, int]] = statistics.doc_freqs
    sizes = np.array([len(count) for count in counts])
    row_of = {term: row for row, term in enumerate(statistics.idf)}
    terms = (row_of[term] for term in chain.from_iterable(counts))
    rows = np.fromiter(terms, np.int32, count=int(sizes.sum()))
    frequencies = chain.from_iterable(count.values() for count in counts)
    tf = np.fromiter(frequencies, np.float64, count=len(rows))
    k1, b = statistics.k1, statistics.b
    lengths = np.array(statistics.doc_len) / statistics.avgdl
    saturation = np.repeat(k1 * (1.0 - b + b * lengths), sizes)
    weights = np.array(list(statistics.idf.values()))[rows] * tf * (k1 + 1.0) / (tf + saturation)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    return sparse.csc_array((weights, rows, starts), shape=(len(row_of), len(counts))).tocsr()
