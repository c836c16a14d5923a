import math

import pytest
from assessments import assess
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.assessment import Assessor
from flare_runtime.blocklist import Blocklist
from flare_runtime.config import QueryConfig
from flare_runtime.language_model import Message
from flare_runtime.query import ForwardQuery, first_hop_query, masked, risky_words, with_slots
from flare_runtime.types import Decision, Draft, Span, Token

FIRED = Decision(True, "min_logprob")


def tokens(pairs: list[tuple[str, float]]) -> list[tuple[str, float]]:
    return [(text, math.log(prob)) for text, prob in pairs]


def never_write(instruction: str, max_tokens: int) -> str:
    raise AssertionError("no query was to be written")


def forward(question: str = "How tall is it?", **settings: object) -> ForwardQuery:
    return ForwardQuery(QueryConfig(**settings), question, never_write, token_risk=0.5)


def test_query_001_the_doubtful_token_is_not_searched_for() -> None:
    draft = assess(
        tokens(
            [
                ("The", 0.98),
                (" bridge", 0.9),
                (" opened", 0.85),
                (" in", 0.97),
                (" 1931", 0.12),
                (".", 0.99),
            ]
        )
    )
    query = forward(mask_below=0.4).build(draft, FIRED)
    assert query == "How tall is it? The bridge opened in"


def test_query_002_one_weak_sub_token_masks_its_word() -> None:
    draft = assess(
        tokens([("Mount", 0.9), (" Ard", 0.3), ("en", 0.95), (" is", 0.9), (" high", 0.8)])
    )
    query = forward(mask_below=0.4).build(draft, FIRED)
    assert query == "How tall is it? Mount is high"


@pytest.mark.parametrize(
    ("case", "pieces", "flagged"),
    [
        (
            "trig-003",
            [("Kel", -0.1), ("vin", -2.9), (" rose", -0.2), (" by", -0.1), (" 4", -0.3)],
            [Span(0, 6)],
        ),
        (
            "trig-004",
            [
                ("In", -0.1),
                (" Dun", -0.3),
                ("mo", -0.2),
                ("or", -0.1),
                (" it", -2.7),
                (" rains", -0.2),
            ],
            [Span(11, 13)],
        ),
    ],
)
def test_trig_003_004_a_word_has_the_score_of_its_own_tokens(
    case: str, pieces: list[tuple[str, float]], flagged: list[Span]
) -> None:
    assert list(risky_words(assess(pieces), FIRED, 0.1, 0.5)) == flagged


def test_what_the_decision_names_is_risky_whatever_its_probability() -> None:
    draft = assess(tokens([("The", 0.99), (" tag", 0.99), (" is", 0.99), (" Q2.14", 0.99)]))
    named = Decision(True, "critic", spans=(Span(11, 16),))
    assert risky_words(draft, named, 0.4, 0.5) == (Span(11, 16),)


def test_codenames_and_grounded_names_stay_in_the_query() -> None:
    pairs = tokens([("Nightjar", 0.01), (" uses", 0.9), (" 14", 0.01)])
    assert risky_words(assess(pairs, blocked=[0], exempt=[2]), FIRED, 0.4, 0.5) == ()


def test_a_score_that_is_not_finite_is_risky() -> None:
    assert risky_words(assess([("odd", math.nan)]), FIRED, 0.4, 0.5) == (Span(0, 3),)


def test_slots_say_what_is_missing() -> None:
    text = "Nightjar runs 2026-Q2.14 with blue tags."
    risky = [Span(0, 8), Span(14, 24), Span(30, 34)]
    assert with_slots(text, risky) == "[name] runs [number] with [detail] tags."
    assert masked(text, risky) == "runs with tags."


PIECES = st.lists(
    st.tuples(
        st.sampled_from([" The", " tag", " is", " 2.14", ".", " Kel", "vin"]), st.floats(-9, 0)
    ),
    min_size=1,
    max_size=10,
)


@given(st.lists(PIECES, min_size=1, max_size=6), st.sampled_from(["masked", "template"]))
def test_no_query_is_empty_the_bare_question_or_asked_twice(
    drafts: list[list[tuple[str, float]]], style: str
) -> None:
    builder = forward("What tag?", style=style)
    builder.mark_asked("what  TAG?")
    queries = [builder.build(assess(pieces), FIRED) for pieces in drafts]
    built = [query for query in queries if query is not None]
    assert len({query.casefold() for query in built}) == len(built)
    for query in built:
        assert query.startswith("What tag? ")
        assert query != "What tag?"


@pytest.mark.parametrize("style", ["masked", "template"])
@pytest.mark.parametrize("max_words", [1, 3, 64])
def test_a_codename_is_redacted_before_words_are_dropped_or_cut(style: str, max_words: int) -> None:
    """Without its sign or its second word a codename would not be known any more."""
    blocklist = Blocklist(["Blue & Heron", "Grey Owl"])
    texts = [" The", " Blue", " &", " Heron", " port", " of", " Grey", " Owl", " is", " 9"]
    draft = Draft(tuple(Token(n, text, -9.0, 0.1) for n, text in enumerate(texts)), "sentence")
    assessment = Assessor(blocklist, None).assess(draft, None, 0, ())
    builder = ForwardQuery(
        QueryConfig(style=style, max_words=max_words),
        "Which port has Grey Owl?",
        never_write,
        0.5,
        blocklist.redact,
    )
    query = builder.build(assessment, FIRED) or ""
    assert not {"Blue", "Heron", "Grey", "Owl"} & set(query.split())
    assert "[redacted]" in query


def test_when_all_is_masked_the_slots_are_asked_for() -> None:
    draft = assess(tokens([("Kelvin", 0.01), (" 4", 0.01)]))
    assert forward().build(draft, FIRED) == "How tall is it? [name] [number]"


def test_when_every_variant_was_asked_there_is_none() -> None:
    draft = assess(tokens([("It", 0.9), (" is", 0.9), (" 5", 0.1)]))
    builder = forward()
    assert builder.build(draft, FIRED) == "How tall is it? It is"
    assert builder.build(draft, FIRED) == "How tall is it? It is [number]"
    assert builder.build(draft, FIRED) is None


def test_what_a_self_check_lacks_joins_the_query() -> None:
    draft = assess(tokens([("It", 0.9), (" runs", 0.9)]))
    missing = Decision(True, "self_check", missing="the image tag")
    assert forward().build(draft, missing) == "How tall is it? It runs the image tag"


def test_the_draft_is_cut_but_never_the_question() -> None:
    draft = assess(tokens([(f" w{index}", 0.9) for index in range(30)]))
    query = forward("one two three four", max_words=2).build(draft, FIRED)
    assert query == "one two three four w0 w1"


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ('"Nightjar image tag"', "What tag? It is Nightjar image tag"),
        ("\n - Nightjar tag\nmore", "What tag? It is Nightjar tag"),
        ("", "What tag? It is"),
        ("  \n ", "What tag? It is"),
    ],
)
def test_a_written_query_is_one_line_and_falls_back(reply: str, wanted: str) -> None:
    asked = []

    def write(instruction: str, max_tokens: int) -> str:
        asked.append((instruction, max_tokens))
        return reply

    builder = ForwardQuery(
        QueryConfig(style="written", max_written_tokens=9), "What tag?", write, 0.5
    )
    builder.mark_asked("What tag?")
    draft = assess(tokens([("It", 0.9), (" is", 0.9), (" 5", 0.1)]))
    assert builder.build(draft, FIRED) == wanted
    ((instruction, max_tokens),) = asked
    assert "What tag?" in instruction
    assert "It is [number]" in instruction
    assert max_tokens == 9


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("And in staging?", "How do I roll out payments? And in staging?"),
        (
            "Who owns it when the pager rings?",
            "How do I roll out payments? Who owns it when the pager rings?",
        ),
        ("Which chart does Nightjar use?", "Which chart does Nightjar use?"),
    ],
)
def test_a_follow_up_takes_the_turn_before_along(question: str, query: str) -> None:
    history = [
        Message("user", "What is Nightjar?"),
        Message("assistant", "A service."),
        Message("user", "How do I roll out payments?"),
        Message("assistant", "With helm."),
    ]
    assert first_hop_query(question, history) == query
    assert first_hop_query(question, []) == question
