import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.retrieval.expand import ExpandedQuery, expand, parse_paraphrases

QUERY = "How do I roll payments out to {staging}?"


class Scripted:
    """Answers in turn and keeps what it was asked."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    def write(self, instruction: str, max_tokens: int) -> str:
        self.asked.append((instruction, max_tokens))
        return self.answers.pop(0)


def test_original_comes_first_then_paraphrases_then_hypothetical_answer() -> None:
    writer = Scripted("1. deploy payments\n2. payments rollout", "Run the\n\nstaging pipeline.")
    assert expand(QUERY, writer, paraphrases=2, hyde=True) == (
        ExpandedQuery(QUERY, "original"),
        ExpandedQuery("deploy payments", "paraphrase"),
        ExpandedQuery("payments rollout", "paraphrase"),
        ExpandedQuery("Run the staging pipeline.", "hypothetical"),
    )


def test_writer_is_asked_about_the_question_as_it_stands() -> None:
    writer = Scripted("", "")
    expand(QUERY, writer, paraphrases=3, hyde=True)
    (paraphrase, few), (hypothetical, _) = writer.asked
    assert QUERY in paraphrase
    assert "3 different" in paraphrase
    assert QUERY in hypothetical
    assert few > 0


def test_nothing_is_asked_when_nothing_is_wanted() -> None:
    writer = Scripted()
    assert expand(QUERY, writer) == (ExpandedQuery(QUERY, "original"),)
    assert expand(QUERY, None, paraphrases=3, hyde=True) == (ExpandedQuery(QUERY, "original"),)
    assert writer.asked == []


def test_no_more_paraphrases_than_asked_for() -> None:
    writer = Scripted("one thing\nanother thing\na third thing")
    assert len(expand(QUERY, writer, paraphrases=2)) == 3


@pytest.mark.parametrize(
    "line",
    [
        "deploy payments",
        "1. deploy payments",
        "2) deploy payments",
        "(3) deploy payments",
        "12: deploy payments",
        "a) deploy payments",
        "- deploy payments",
        "* deploy payments",
        "• deploy payments",
        '1. "deploy payments"',
        "  - “deploy payments”  ",
        "**deploy payments**",
        "> deploy payments",
        "Query 1: deploy payments",
        "- 1. deploy payments",
        "`deploy payments`",
        "「deploy payments」",
    ],
)
def test_lines_lose_numbers_bullets_and_quotes(line: str) -> None:
    assert parse_paraphrases(line, QUERY) == ("deploy payments",)


@pytest.mark.parametrize(
    "line", ["10.0.0.7 is down", "3.5 mm screw", "v1.2.3 notes", "A. Smith on pumps", "e-mail"]
)
def test_what_only_looks_like_a_number_stays(line: str) -> None:
    assert parse_paraphrases(line, QUERY) == (line,)


def test_blanks_repeats_introductions_and_the_question_itself_are_dropped() -> None:
    answer = f"Here are some queries:\n\n1. Deploy  it\n2.\n3. deploy it\n---\n{QUERY.upper()}\n"
    assert parse_paraphrases(answer, QUERY) == ("Deploy  it",)


def test_a_rambling_line_is_no_query() -> None:
    assert parse_paraphrases("word " * 200, QUERY) == ()


@pytest.mark.parametrize("answer", ["", "   \n", QUERY])
def test_hypothetical_answer_that_says_nothing_is_dropped(answer: str) -> None:
    assert expand(QUERY, Scripted(answer), hyde=True) == (ExpandedQuery(QUERY, "original"),)


@given(answer=st.text(), query=st.text(min_size=1), number=st.integers(1, 4))
def test_junk_never_raises_and_never_takes_the_original_away(
    answer: str, query: str, number: int
) -> None:
    queries = expand(query, Scripted(answer, answer), paraphrases=number, hyde=True)
    assert queries[0] == ExpandedQuery(query, "original")
    assert len(queries) <= number + 2
    paraphrases = [item.text for item in queries if item.kind == "paraphrase"]
    assert all(text.strip() for text in paraphrases)
    assert len({" ".join(text.casefold().split()) for text in paraphrases}) == len(paraphrases)
