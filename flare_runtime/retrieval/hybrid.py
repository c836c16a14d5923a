"""The retrieval pipeline: expand, search both ways, fuse, rerank, keep what is relevant."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from flare_runtime.config import RetrievalConfig
from flare_runtime.errors import ConfigError, CorpusIndexError
from flare_runtime.retrieval import QueryWriter
from flare_runtime.retrieval.candidates import find_candidates
from flare_runtime.retrieval.embedder import Embedder
from flare_runtime.retrieval.embedder import open_embedder as embedder_by_name
from flare_runtime.retrieval.expand import expand
from flare_runtime.retrieval.explanation import Candidate, SearchExplanation
from flare_runtime.retrieval.pair_classifier import load_pair_classifier
from flare_runtime.retrieval.rerank import (
    CrossEncoderReranker,
    LateInteractionReranker,
    PairClassifier,
    Reranker,
    rank_by_relevance,
    relevant,
)
from flare_runtime.retrieval.search_index import SearchIndex, open_search_index
from flare_runtime.types import Hit


class HybridRetriever:
    """Searches an index on this machine by meaning and by words.

    ``reranker`` None lets rank fusion have the last word. ``writer`` is the generator that
    expands queries; without one they are searched as they are.

    Raises:
        ConfigError: ``min_relevance`` is set without a reranker, whose scores it is about.
        CorpusIndexError: the embedder's vectors are not of the index's kind.

    """

    def __init__(
        self,
        index: SearchIndex,
        embedder: Embedder,
        config: RetrievalConfig,
        reranker: Reranker | None = None,
        writer: QueryWriter | None = None,
    ) -> None:
        _check(index, embedder, config, reranker)
        self._index = index
        self._embedder = embedder
        self._config = config
        self._reranker = reranker
        self._writer = writer

    @classmethod
    def load(
        cls,
        index: Path | str,
        config: RetrievalConfig | None = None,
        open_embedder: Callable[[str], Embedder] | None = None,
        open_classifier: Callable[[str], PairClassifier] | None = None,
        writer: QueryWriter | None = None,
    ) -> "HybridRetriever":
        """Open an index folder, the embedder that made it, and the configured reranker.

        Models are opened by name; unless told otherwise, as ``flare models list`` knows them.

        Raises:
            ConfigError: settings contradict each other.
            CorpusIndexError: the index is missing or damaged.
            ModelError: a model is missing or unsuitable.

        """
        config = config or RetrievalConfig()
        opened = open_search_index(Path(index))
        embedder = (open_embedder or embedder_by_name)(opened.embedder)
        reranker: Reranker | None = None
        if config.rerank == "late_interaction":
            reranker = LateInteractionReranker(embedder)
        elif config.rerank == "cross_encoder":
            if not config.rerank_model:
                raise ConfigError('rerank = "cross_encoder" needs rerank_model, a folder or name')
            reranker = CrossEncoderReranker(
                (open_classifier or _open_classifier)(config.rerank_model)
            )
        return cls(opened, embedder, config, reranker, writer)

    def with_writer(self, writer: QueryWriter) -> "HybridRetriever":
        """Return the same retriever with a generator to expand queries with."""
        return HybridRetriever(self._index, self._embedder, self._config, self._reranker, writer)

    @property
    def num_passages(self) -> int:
        """How many passages can be found at all."""
        return len(self._index.passages)

    @property
    def is_remote(self) -> bool:
        """False: a query stays on this machine."""
        return False

    def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
        """Return at most ``top_k`` hits, best first; none for a blank query.

        Raises:
            ConfigError: ``top_k`` is below 1.

        """
        return self.explain(query, top_k).hits

    def explain(self, query: str, top_k: int) -> SearchExplanation:
        """Search and keep how each candidate came to its place. Raises as ``search``."""
        config = self._config
        if top_k < 1:
            raise ConfigError(f"top_k must be at least 1, was: {top_k}")
        name = self._reranker.name if self._reranker else "none"
        if not query.strip() or not self.num_passages:
            return SearchExplanation(query, (), name, ())
        queries = expand(query, self._writer, config.paraphrases, config.hyde)
        num_places = max(config.fused_k, top_k)
        candidates = find_candidates(self._index, self._embedder, queries, config, num_places)
        return SearchExplanation(query, queries, name, self._rank(query, candidates, top_k))

    @property
    def _least_relevance(self) -> float:
        if self._config.min_relevance is not None:
            return self._config.min_relevance
        return self._reranker.off_topic if self._reranker else 0.0

    def _rank(
        self, query: str, candidates: tuple[Candidate, ...], top_k: int
    ) -> tuple[Candidate, ...]:
        """Give candidates their final places; those that are no hits follow the hits."""
        if self._reranker:
            scores = self._reranker.rerank(query, [item.passage for item in candidates])
            candidates = tuple(
                replace(item, rerank_score=score)
                for item, score in zip(candidates, scores, strict=True)
            )
        scored = [item.score for item in candidates]
        order = rank_by_relevance(scored)
        least = self._least_relevance
        # 0 lets all pass, whatever the scale of the scores.
        kept = set(relevant(scored, least)) if least > 0 else set(order)
        return tuple(
            replace(candidates[at], rank=rank if rank <= top_k and at in kept else None)
            for rank, at in enumerate(order, start=1)
        )


def _check(
    index: SearchIndex, embedder: Embedder, config: RetrievalConfig, reranker: Reranker | None
) -> None:
    if config.min_relevance and config.min_relevance > 0 and reranker is None:
        raise ConfigError(
            f"min_relevance must be 0 when nothing reranks, was: {config.min_relevance}"
        )
    if config.dense_weight == 0 and config.sparse_weight == 0:
        raise ConfigError("dense_weight and sparse_weight are both 0: raise one of them")
    dimension = index.dense.dimension
    if index.passages and dimension != embedder.dimension:
        raise CorpusIndexError(
            f"the index has vectors of {dimension}, {embedder.name} makes {embedder.dimension}:"
            " use the embedder that built it or index again"
        )


def _open_classifier(name: str) -> PairClassifier:
    from flare_runtime.model_store import resolve_model

    return load_pair_classifier(resolve_model(name, "embedder"), name)
