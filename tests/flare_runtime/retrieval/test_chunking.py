import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flare_runtime.retrieval.chunking import MAX_TOKEN_LENGTH, split_document, split_spans
from flare_runtime.retrieval.corpus import indexed_text
from flare_runtime.retrieval.readers import Document, Section
from flare_runtime.retrieval.readers.markdown import read_markdown
from flare_runtime.retrieval.readers.text import read_text


def count_words(text: str) -> int:
    return len(text.split())


def chunks(text: str, max_tokens: int, count=len) -> list[list]:
    return [[text[s.start : s.end], s.start] for s in split_spans(text, max_tokens, count)]


def test_repeated_words_keep_their_own_offsets_ingest_021():
    assert chunks("valve valve", 5) == [["valve", 0], ["valve", 6]]


def test_stripped_blanks_count_in_offsets_ingest_022():
    assert chunks("  lead in.  lead in.", 8) == [["lead in.", 2], ["lead in.", 12]]


def test_the_same_text_gives_the_same_ids_ingest_026():
    first, second = (
        split_document(read_markdown(b"one. two.", "a.md"), 50, count_words) for _ in range(2)
    )
    assert first == second
    assert [passage.id for passage in first] == [passage.id for passage in second]


@given(
    st.text(alphabet="ab .,(-\n\t\u00a0漢👍", max_size=120),
    st.integers(1, 12),
    st.sampled_from([len, count_words, lambda text: len(text.encode())]),
)
@settings(max_examples=300)
def test_spans_are_exact_and_lose_nothing_but_white_space(text, max_tokens, count):
    position = 0
    for span in split_spans(text, max_tokens, count):
        piece = text[span.start : span.end]
        assert piece == piece.strip() != ""
        assert count(piece) <= max_tokens or len(piece) == 1
        assert text[position : span.start].strip() == ""
        position = span.end
    assert text[position:].strip() == ""


@given(st.text(alphabet="#=-` ab\n", max_size=200), st.integers(2, 20))
def test_passages_of_markdown_stay_in_their_sections(text, chunk_tokens):
    document = read_markdown(text.encode(), "a.md")
    passages = split_document(document, chunk_tokens, count_words)
    assert len({passage.id for passage in passages}) == len(passages)
    for passage in passages:
        assert document.text[passage.start : passage.end] == passage.text
        assert count_words(indexed_text(passage)) <= chunk_tokens
        homes = [s for s in document.sections if s.start <= passage.start and passage.end <= s.end]
        assert len(homes) == 1


def test_a_passage_says_where_it_stands():
    text = "---\ntitle: T\n---\n# A\n\none\ntwo\n\n## B\nthree\n"
    passages = split_document(read_markdown(text.encode(), "a.md"), 50, count_words)
    found = [(p.text, p.title, p.location) for p in passages]
    assert found == [("one\ntwo", "T > A", "lines 6-7"), ("three", "T > A > B", "line 10")]
    lines = text.split("\n")
    assert lines[5:7] == ["one", "two"]


def test_a_section_may_name_its_place_and_a_text_without_lines_has_none():
    sections = (Section("", 0, 3, location="page 4"), Section("", 3, 6))
    passages = split_document(Document("a.pdf", "oneTWO", sections), 5, count_words)
    assert [p.location for p in passages] == ["page 4", ""]


def test_ids_depend_on_source_and_text_alone():
    def ids(source: str, text: str) -> list[str]:
        document = read_markdown(text.encode(), source)
        return [p.id for p in split_document(document, 9, count_words)]

    (plain,) = ids("a.md", "same text")
    assert ids("a.md", "# Heading\n\nother\n\n# Later\n\nsame text")[1] == plain
    assert ids("b.md", "same text") != [plain]
    assert ids("a.mds", "ame text") != [plain]
    assert len(plain) == 16
    assert ids("a.md", "# A\nsame text\n# B\nsame text\n# C\nsame text") == [
        plain,
        f"{plain}-2",
        f"{plain}-3",
    ]


def test_a_long_heading_path_gives_way_to_the_text():
    text = "# one two three\n## four five\n### six\nbody of five words here"
    (passage,) = split_document(read_markdown(text.encode(), "a"), 9, count_words)
    assert passage.title == "four five > six"
    text = "# " + "word " * 30 + "\nbody"
    (passage,) = split_document(read_markdown(text.encode(), "a"), 10, count_words)
    assert passage.title == "word word word word word"
    (passage,) = split_document(read_markdown(text.encode(), "a"), 1, count_words)
    assert passage.title == ""


def test_paragraphs_are_kept_together_where_they_fit():
    text = "First one. It has two.\n\nSecond one. It has two."
    assert [piece for piece, _ in chunks(text, 5, count_words)] == text.split("\n\n")


@pytest.mark.parametrize(
    "text",
    [
        "x" * 200_000,
        "ab." * 60_000,
        "漢字" * 50_000,
        "\n" * 200_000 + "x",
        "".join("a" + " " * length for length in range(1100)),
    ],
    ids=["no blank", "dots", "cjk", "newlines", "ever more blanks"],
)
def test_odd_texts_are_split_all_the_same(text):
    # A word-piece tokenizer calls any run without blanks one unknown token, as words do here.
    spans = split_spans(text, 50, count_words)
    assert "".join(text[s.start : s.end] for s in spans).replace(" ", "") == "".join(text.split())
    assert max(s.end - s.start for s in spans) <= 50 * MAX_TOKEN_LENGTH


def test_splitting_is_deterministic():
    words = random.Random(0).choices(["pump", "valve,", "water.", "\n", "\n\n"], k=3000)
    document = read_text(" ".join(words).encode(), "a.txt")
    assert split_document(document, 40, count_words) == split_document(document, 40, count_words)
