import pytest
from fakes import passage
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.buffer import EvidenceBuffer, compress
from flare_runtime.config import EvidenceConfig
from flare_runtime.errors import ContextError
from flare_runtime.types import Hit, Passage

LONG = "Ducks swim. The tag is 14. Cats sleep. The chart holds the tag."


def hits(*passages: Passage) -> list[Hit]:
    return [Hit(found, 1.0, rank) for rank, found in enumerate(passages, start=1)]


def buffer(max_passages: int = 20, max_tokens: int = 1000, **settings: int) -> EvidenceBuffer:
    return EvidenceBuffer(
        EvidenceConfig(**settings),
        "What is the tag?",
        lambda found: len(found.text.split()),
        max_passages,
        max_tokens,
    )


def ids(passages: tuple[Passage, ...]) -> list[str]:
    return [found.id for found in passages]


def test_fuse_007_a_passage_enters_once() -> None:
    evidence = buffer()
    evidence.open(hits(passage("c1", "one"), passage("c2", "two")))
    new = evidence.add(hits(passage("c2", "two"), passage("c3", "three")), 5)
    assert ids(new) == ["c3"]
    assert ids(evidence.passages) == ["c1", "c2", "c3"]


def test_fuse_008_equal_text_counts_as_equal() -> None:
    evidence = buffer()
    texts = ["Close valve  B.\n", "Close valve B.", "Open valve C."]
    evidence.open(hits(*(passage(f"p{n}", text) for n, text in enumerate(texts))))
    assert ids(evidence.passages) == ["p0", "p2"]


def test_a_lookup_keeps_the_best_few() -> None:
    evidence = buffer()
    evidence.open(hits(passage("a", "a")))
    new = evidence.add(hits(*(passage(f"n{n}", f"text {n}") for n in range(5))), 2)
    assert ids(new) == ["n0", "n1"]


def test_a_passage_too_long_does_not_hide_one_that_fits() -> None:
    evidence = buffer(max_tokens=5)
    evidence.open(hits(passage("a", "one")))
    long, short = passage("long", "w " * 9), passage("short", "two")
    assert ids(evidence.add(hits(long, long, short), 1)) == ["short"]
    assert ids(evidence.add(hits(short, passage("other", "three")), 1)) == ["other"]


def test_nothing_new_is_an_answer_too() -> None:
    evidence = buffer()
    evidence.open(hits(passage("a", "a")))
    assert evidence.add(hits(passage("a", "a")), 2) == ()
    assert evidence.num_passages == 1


def test_the_number_of_passages_is_capped() -> None:
    evidence = buffer(max_passages=2)
    evidence.open(hits(passage("a", "a")))
    assert ids(evidence.add(hits(passage("b", "b"), passage("c", "c")), 3)) == ["b"]
    assert evidence.add(hits(passage("d", "d")), 3) == ()


@given(st.lists(st.lists(st.integers(1, 9), max_size=4), max_size=5), st.integers(0, 25))
def test_the_token_budget_holds_over_all_lookups(rounds: list[list[int]], budget: int) -> None:
    evidence = buffer(max_tokens=budget, keep_lookups=99)
    for number, sizes in enumerate(rounds):
        found = [
            passage(f"{number}-{n}", f"{number} {n} " + "w " * size) for n, size in enumerate(sizes)
        ]
        evidence.open(hits(*found)) if number == 0 else evidence.add(hits(*found), 9)
    assert sum(len(found.text.split()) for found in evidence.passages) <= budget


def test_a_prompt_without_room_is_an_error() -> None:
    with pytest.raises(ContextError, match="exceeds the budget by 5 tokens"):
        buffer(max_tokens=-5).open(hits(passage("a", "a")))


def test_older_lookups_are_compressed_and_first_hop_stays_whole() -> None:
    evidence = buffer(keep_lookups=1, compressed_sentences=2)
    evidence.open(hits(passage("first", "F " + LONG)))
    evidence.add(hits(passage("old", LONG)), 2)
    evidence.add(hits(passage("new", "N " + LONG)), 2)
    texts = [found.text for found in evidence.passages]
    assert texts == ["F " + LONG, "The tag is 14. The chart holds the tag.", "N " + LONG]


def test_compression_keeps_order_and_id() -> None:
    short = compress(passage("p", LONG), "chart", 2)
    assert short == passage("p", LONG).__class__(
        "p", "Ducks swim. The chart holds the tag.", "p", "p.md", 0, len(LONG)
    )
    assert compress(passage("p", "One. Two."), "x", 2) == passage("p", "One. Two.")
