import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.errors import ConfigError
from flare_runtime.retrieval.fusion import (
    limit_per_source,
    reciprocal_rank_fusion,
    unique,
    unique_by_text,
)

RANKINGS = st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), max_size=4)


def test_fuse_001_repeats_inside_a_list_count_once() -> None:
    fused = reciprocal_rank_fusion([["X", "X", "Y"], ["Y"]], k=60)
    assert [item.id for item in fused] == ["Y", "X"]
    assert [item.score for item in fused] == pytest.approx([0.032522, 0.016393], abs=1e-6)
    assert [item.ranks for item in fused] == [(2, 1), (1, None)]


def test_fuse_003_list_of_weight_zero_changes_nothing() -> None:
    fused = reciprocal_rank_fusion([["a", "b"], ["c", "a"]], k=60, weights=[1.0, 0.0])
    assert {item.id: item.score for item in fused} == pytest.approx(
        {"a": 0.016393, "b": 0.016129}, abs=1e-6
    )
    assert [item.id for item in fused] == ["a", "b"]


def test_fuse_004_weights_decide() -> None:
    fused = reciprocal_rank_fusion([["a", "b"], ["b", "a"]], k=60, weights=[2.0, 1.0])
    assert [item.id for item in fused] == ["a", "b"]
    fused = reciprocal_rank_fusion([["a", "b"], ["b", "a"]], k=60, weights=[1.0, 2.0])
    assert [item.id for item in fused] == ["b", "a"]


def test_fuse_008_equal_but_for_white_space_is_equal() -> None:
    texts = ["Close valve  B.\n", "Close valve B.", "Open valve C."]
    assert unique_by_text(range(3), lambda row: texts[row]) == (0, 2)


@given(rankings=RANKINGS, k=st.integers(0, 100), data=st.data())
def test_scores_and_order_equal_exact_arithmetic(
    rankings: list[list[str]], k: int, data: st.DataObject
) -> None:
    weights = data.draw(
        st.lists(st.sampled_from([0, 1, 2, 3]), min_size=len(rankings), max_size=len(rankings))
    )
    expected: dict[str, Fraction] = {}
    best: dict[str, int] = {}
    seen: list[str] = []
    for ranking, weight in zip(rankings, weights, strict=True):
        deduplicated = [id_ for at, id_ in enumerate(ranking) if id_ not in ranking[:at]]
        for rank, id_ in enumerate(deduplicated, start=1):
            if weight:
                expected[id_] = expected.get(id_, Fraction(0)) + Fraction(weight, k + rank)
                best[id_] = min(best.get(id_, rank), rank)
                seen.append(id_)
    order = sorted(expected, key=lambda id_: (-expected[id_], best[id_], seen.index(id_)))
    fused = reciprocal_rank_fusion(rankings, k, weights)
    assert [item.id for item in fused] == order
    for item in fused:
        assert item.score == pytest.approx(float(expected[item.id]))


def test_tie_goes_to_the_best_single_rank_then_to_the_first_seen() -> None:
    # b and c: 1/1 each; a: 1/2 + 1/2 of two lists.
    fused = reciprocal_rank_fusion([["b", "a"], ["c", "a"]], k=0)
    assert [item.id for item in fused] == ["b", "c", "a"]


def test_order_of_lists_cannot_break_a_tie() -> None:
    # Added up in floating point, the two sums differ in the last digit.
    rankings = [["x", "p", "q"], ["p", "q", "x"], ["q", "x", "p"]]
    for shift in range(3):
        fused = reciprocal_rank_fusion(rankings[shift:] + rankings[:shift], k=7)
        assert len({item.score for item in fused}) == 1
        assert fused[0].id == rankings[shift][0]


def test_nothing_to_fuse() -> None:
    assert reciprocal_rank_fusion([]) == ()
    assert reciprocal_rank_fusion([[], []]) == ()
    assert reciprocal_rank_fusion([["a"]], weights=[0.0]) == ()


def test_ids_need_only_be_hashable() -> None:
    assert [item.id for item in reciprocal_rank_fusion([[3, 1], [1]])] == [1, 3]


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_weight_out_of_range_is_refused(weight: float) -> None:
    with pytest.raises(ConfigError, match="weight of a list"):
        reciprocal_rank_fusion([["a"]], weights=[weight])


def test_one_weight_a_list() -> None:
    with pytest.raises(ConfigError, match="1 for 2 lists"):
        reciprocal_rank_fusion([["a"], ["b"]], weights=[1.0])


@pytest.mark.parametrize("k", [-1, math.nan])
def test_k_out_of_range_is_refused(k: float) -> None:
    with pytest.raises(ConfigError, match="rrf_k"):
        reciprocal_rank_fusion([["a"]], k=k)


@given(st.lists(st.sampled_from("abc")))
def test_unique_keeps_the_first_of_each(ids: list[str]) -> None:
    assert list(unique(ids)) == [id_ for at, id_ in enumerate(ids) if id_ not in ids[:at]]


def test_no_source_floods() -> None:
    items = ["a1", "a2", "b1", "a3", "b2", "c1"]
    assert limit_per_source(items, lambda item: item[0], 2) == ("a1", "a2", "b1", "b2", "c1")
    assert limit_per_source(items, lambda item: item[0], 1) == ("a1", "b1", "c1")
    assert limit_per_source([], lambda item: item, 1) == ()
