"""From queries to the candidates that are worth reranking: both searches, fused."""

from collections.abc import Sequence
from dataclasses import dataclass

from flare_runtime.config import RetrievalConfig
from flare_runtime.retrieval.embedder import Embedder
from flare_runtime.retrieval.expand import ExpandedQuery
from flare_runtime.retrieval.explanation import Candidate
from flare_runtime.retrieval.fusion import (
    Fused,
    limit_per_source,
    reciprocal_rank_fusion,
    unique_by_text,
)
from flare_runtime.retrieval.search_index import SearchIndex


@dataclass(frozen=True, slots=True)
class RankedList:
    """Rows of passages, best first, by one query and one way of searching."""

    name: str
    weight: float
    rows: tuple[int, ...]


def find_candidates(
    index: SearchIndex,
    embedder: Embedder,
    queries: Sequence[ExpandedQuery],
    config: RetrievalConfig,
    num_places: int,
) -> tuple[Candidate, ...]:
    """Return at most ``num_places`` passages in fused order.

    Of passages with equal texts the best stays. No document takes more than ``max_per_source`` of
    ``fused_k`` places, and of more places the same share; an index of one document has no limit.
    """
    passages = index.passages
    depth = max(config.depth, num_places)
    lists = (
        *_search_dense(index, embedder, queries, config.dense_weight, depth),
        *_search_sparse(index, queries, config.sparse_weight, depth),
    )
    fused = reciprocal_rank_fusion(
        [found.rows for found in lists], config.rrf_k, [found.weight for found in lists]
    )
    fused = unique_by_text(fused, lambda item: passages[item.id].text)
    limit = num_places if index.has_one_source else _places_per_source(config, num_places)
    fused = limit_per_source(fused, lambda item: passages[item.id].source, limit)
    return tuple(
        Candidate(passages[item.id], _list_ranks(item, lists), rank, item.score)
        for rank, item in enumerate(fused[:num_places], start=1)
    )


def _search_dense(
    index: SearchIndex,
    embedder: Embedder,
    queries: Sequence[ExpandedQuery],
    weight: float,
    depth: int,
) -> tuple[RankedList, ...]:
    if weight == 0:
        return ()
    vectors = embedder.embed([query.text for query in queries])
    return tuple(
        RankedList(_name("dense", query), weight, _rows(index.dense.search(vector, depth)))
        for query, vector in zip(queries, vectors, strict=True)
    )


def _search_sparse(
    index: SearchIndex, queries: Sequence[ExpandedQuery], weight: float, depth: int
) -> tuple[RankedList, ...]:
    if weight == 0:
        return ()
    return tuple(
        RankedList(_name("sparse", query), weight, _rows(index.sparse.search(query.text, depth)))
        for query in queries
        if query.kind != "hypothetical"
    )


def _rows(found: Sequence[tuple[int, float]]) -> tuple[int, ...]:
    return tuple(row for row, _ in found)


def _name(search: str, query: ExpandedQuery) -> str:
    return search if query.kind == "original" else f"{search} ({query.text})"


def _list_ranks(item: Fused[int], lists: Sequence[RankedList]) -> dict[str, int]:
    pairs = zip(lists, item.ranks, strict=True)
    return {found.name: rank for found, rank in pairs if rank is not None}


def _places_per_source(config: RetrievalConfig, num_places: int) -> int:
    # Rounded up, so that a small share is still a place.
    return -(-config.max_per_source * num_places // config.fused_k)
