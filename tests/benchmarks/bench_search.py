"""Hybrid search over 100 000 synthetic passages, without the models: time, recall, memory.

    python tests/benchmarks/bench_search.py [--passages N] [--queries N]

Text is Zipf-distributed words; vectors are unit vectors around cluster centres. What is timed is
both searches, fusion and the choice of candidates: all but embedding and reranking.
"""

import argparse
import json
import resource
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flare_runtime.config import RetrievalConfig
from flare_runtime.retrieval.dense import DenseIndex
from flare_runtime.retrieval.hybrid import HybridRetriever
from flare_runtime.retrieval.search_index import SearchIndex
from flare_runtime.retrieval.sparse import SparseIndex
from flare_runtime.types import Passage

DIMENSION = 384
NUM_WORDS = 50_000
WORDS_PER_PASSAGE = 120
WORDS_PER_QUERY = 12
PASSAGES_PER_SOURCE = 20
PASSAGES_PER_CLUSTER = 5
SPREAD = 0.8
"""Length of the noise around a cluster's centre, which has length 1."""


class GivenVectors:
    """An embedder that looks its answers up."""

    name = "given"
    dimension = DIMENSION
    max_tokens = 512

    def __init__(self, vectors: dict[str, NDArray[np.float32]]) -> None:
        self._vectors = vectors

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self._vectors[text] for text in texts])

    def token_vectors(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], ...]:
        raise NotImplementedError("nothing is reranked here")


def zipf_texts(rng: np.random.Generator, num_texts: int, num_words: int) -> list[str]:
    probabilities = 1.0 / np.arange(1, NUM_WORDS + 1)
    words = np.array([f"w{number:x}" for number in range(NUM_WORDS)])
    drawn = rng.choice(
        NUM_WORDS, size=(num_texts, num_words), p=probabilities / probabilities.sum()
    )
    return [" ".join(row) for row in words[drawn]]


def around(rng: np.random.Generator, centres: NDArray[np.float32]) -> NDArray[np.float32]:
    """One unit vector near each centre."""
    noise = rng.standard_normal(centres.shape, dtype=np.float32) * (SPREAD / DIMENSION**0.5)
    vectors = centres + noise
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def recall_at_10(
    dense: DenseIndex, vectors: NDArray[np.float32], queries: NDArray[np.float32]
) -> float:
    truth = np.argsort(-(queries @ vectors.T), axis=1)[:, :10]
    found = [{row for row, _ in dense.search(query, 10)} for query in queries]
    return float(
        np.mean([len(f & set(t)) / 10 for f, t in zip(found, truth.tolist(), strict=True)])
    )


def timed_ms(retriever: HybridRetriever, queries: Sequence[str]) -> NDArray[np.float64]:
    times = []
    for query in queries:
        start = time.perf_counter()
        retriever.search(query, 4)
        times.append((time.perf_counter() - start) * 1000.0)
    return np.array(times)


def main() -> None:
    """Build, search, print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    args = parser.parse_args()
    rng = np.random.default_rng(0)

    texts = zipf_texts(rng, args.passages, WORDS_PER_PASSAGE)
    num_clusters = max(1, args.passages // PASSAGES_PER_CLUSTER)
    centres = rng.standard_normal((num_clusters, DIMENSION), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    vectors = around(rng, centres[rng.integers(num_clusters, size=args.passages)])
    asked = around(rng, centres[rng.integers(num_clusters, size=args.queries)])
    queries = zipf_texts(rng, args.queries, WORDS_PER_QUERY)
    passages = tuple(
        Passage(str(row), text, "", f"file-{row // PASSAGES_PER_SOURCE}", 0, len(text))
        for row, text in enumerate(texts)
    )

    start = time.perf_counter()
    sparse = SparseIndex.build(texts)
    sparse_s = time.perf_counter() - start
    start = time.perf_counter()
    dense = DenseIndex.build(vectors)
    dense_s = time.perf_counter() - start

    retriever = HybridRetriever(
        SearchIndex(passages, dense, sparse),
        GivenVectors(dict(zip(queries, asked, strict=True))),
        RetrievalConfig(rerank="none"),
    )
    timed_ms(retriever, queries[:10])
    times = timed_ms(retriever, queries)
    result = {
        "passages": args.passages,
        "p50_ms": round(float(np.percentile(times, 50)), 2),
        "p95_ms": round(float(np.percentile(times, 95)), 2),
        "recall_at_10": round(recall_at_10(dense, vectors, asked), 4),
        "dense_build_s": round(dense_s, 1),
        "sparse_build_s": round(sparse_s, 1),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
