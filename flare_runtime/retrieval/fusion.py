"""Several ranked lists into one: rank fusion, and the ways of dropping what is there already."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from flare_runtime.errors import ConfigError

Item = TypeVar("Item")
Id = TypeVar("Id", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Fused(Generic[Id]):
    """An id with its fused score, and its rank in each list (None where it is missing)."""

    id: Id
    score: float
    ranks: tuple[int | None, ...]


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[Id]], k: float = 60, weights: Sequence[float] | None = None
) -> tuple[Fused[Id], ...]:
    """Fuse ``rankings``: an id scores the sum of weight / (k + rank) over the lists it is in.

    Cormack, Clarke and Büttcher 2009. Ranks count from 1 after each list has dropped its own
    repeats. Lists of weight 0 change nothing: what stands only there is left out. Best first;
    ties by the best single rank, then by who was seen first.

    Raises:
        ConfigError: a weight is missing, negative or not finite, or ``k`` is negative.

    """
    weights = [1.0] * len(rankings) if weights is None else list(weights)
    _check(rankings, k, weights)
    rank_of = [{id_: rank for rank, id_ in enumerate(unique(ids), start=1)} for ids in rankings]
    counted = [ranks for ranks, weight in zip(rank_of, weights, strict=True) if weight > 0]
    fused = []
    for id_ in unique(id_ for ranks in counted for id_ in ranks):
        ranks = tuple(ranks.get(id_) for ranks in rank_of)
        # fsum, so that the order of the lists cannot break a tie.
        pairs = zip(ranks, weights, strict=True)
        score = math.fsum(weight / (k + rank) for rank, weight in pairs if rank is not None)
        fused.append(Fused(id_, score, ranks))
    best = {id_: min(r[id_] for r in counted if id_ in r) for id_ in (item.id for item in fused)}
    return tuple(sorted(fused, key=lambda item: (-item.score, best[item.id])))


def _check(rankings: Sequence[Sequence[Id]], k: float, weights: Sequence[float]) -> None:
    if len(weights) != len(rankings):
        raise ConfigError(
            f"rank fusion needs one weight a list, was: {len(weights)} for {len(rankings)} lists"
        )
    for weight in weights:
        if not (math.isfinite(weight) and weight >= 0):
            raise ConfigError(f"weight of a list must be at least 0 and finite, was: {weight}")
    if not k >= 0:
        raise ConfigError(f"rrf_k must be at least 0, was: {k}")


def unique(ids: Iterable[Id]) -> tuple[Id, ...]:
    """Drop repeats, first kept."""
    return tuple(dict.fromkeys(ids))


def unique_by_text(items: Iterable[Item], text: Callable[[Item], str]) -> tuple[Item, ...]:
    """Drop items whose text was there before but for white space, first kept."""
    kept: dict[str, Item] = {}
    for item in items:
        kept.setdefault(" ".join(text(item).split()), item)
    return tuple(kept.values())


def limit_per_source(
    items: Iterable[Item], source: Callable[[Item], str], max_per_source: int
) -> tuple[Item, ...]:
    """Keep the first ``max_per_source`` items of each source, so that none floods the list."""
    taken: Counter[str] = Counter()
    kept = []
    for item in items:
        taken[source(item)] += 1
        if taken[source(item)] <= max_per_source:
            kept.append(item)
    return tuple(kept)
