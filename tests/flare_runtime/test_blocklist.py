import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.blocklist import Blocklist
from flare_runtime.errors import ConfigError
from flare_runtime.folding import FoldedText, fold
from flare_runtime.types import Span


def spans(blocklist, text):
    return [(span.start, span.end) for span in blocklist.find(text)]


def streamed(blocklist, chunks):
    stream = blocklist.stream()
    found = [span for chunk in chunks for span in stream.push(chunk)]
    return found + list(stream.flush())


# --- oracle: compare every stretch of the original text, with no automaton and no offsets ---

IGNORABLE = "\u00ad\u200b\u200d\ufe0f\u2060"


def nfkc_fold(text):
    text = "".join(char for char in text if char not in IGNORABLE)
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text.casefold())
    return re.sub(r"\s+", " ", text)


def in_word(char, hyphen):
    is_letter = char.isalnum() or char == "_" or unicodedata.category(char).startswith("M")
    return is_letter or (hyphen and char in "-\u2010")


def brute_force(terms, text, hyphen):
    wanted = {nfkc_fold(term).strip() for term in terms}
    found, position = [], 0
    while position < len(text):
        ends = [
            end
            for end in range(len(text), position, -1)
            if is_term(text, position, end, wanted) and is_whole(text, position, end, hyphen)
        ]
        if ends:
            found.append((position, ends[0]))
        position = ends[0] if ends else position + 1
    return found


def is_term(text, start, end, wanted):
    visible = text[start] not in IGNORABLE and text[end - 1] not in IGNORABLE
    return visible and nfkc_fold(text[start:end]) in wanted


def is_whole(text, start, end, hyphen):
    before = nfkc_fold(text[:start])[-1:]
    after = nfkc_fold(text[end:])[:1]
    return not (before and in_word(before, hyphen)) and not (after and in_word(after, hyphen))


ALPHABET = "aAbé\u0301\u0323ﬁfi -_.+1 \n\u00a0\u00ad\u200bßsK\u212aİ½가각"
TERMS = st.lists(
    st.sampled_from(
        ["a", "ab", "a b", "b a b", "é", "fi", "ss", "k", "a-b", "+", "a+", ".a", "a.b", "가", "i̇"]
    ),
    max_size=6,
)


@given(TERMS, st.text(ALPHABET, max_size=14), st.booleans())
def test_find_equals_brute_force(terms, text, hyphen):
    text = text.replace("½", "1")  # the oracle cuts between original characters only
    assert spans(Blocklist(terms, hyphen), text) == brute_force(terms, text, hyphen)


@given(TERMS, st.lists(st.text(ALPHABET, max_size=5), max_size=8), st.booleans())
def test_any_chunking_finds_what_the_whole_text_has(terms, chunks, hyphen):
    blocklist = Blocklist([*terms, "1", "2"], hyphen)
    assert streamed(blocklist, chunks) == list(blocklist.find("".join(chunks)))


@given(TERMS, st.lists(st.text(ALPHABET, max_size=3), max_size=6), st.text(ALPHABET, max_size=6))
def test_no_term_reaches_back_into_released_text(terms, chunks, rest):
    blocklist = Blocklist(terms)
    stream, known, safe = blocklist.stream(), [], 0
    for chunk in chunks:
        known += stream.push(chunk)
        assert safe <= stream.num_safe <= len("".join(chunks))
        safe = stream.num_safe
    text = "".join(chunks)
    later = [s for s in blocklist.find(text + rest) if s not in known]
    assert all(span.start >= safe for span in later)


@given(st.lists(st.sampled_from(["Orca", "Blue Finch", "é1"]), max_size=3), st.text(max_size=30))
def test_everything_is_safe_after_the_flush(terms, text):
    stream = Blocklist(terms).stream()
    stream.push(text)
    stream.flush()
    assert stream.num_safe == len(text)


@pytest.mark.parametrize(
    ("chunks", "safe"),
    [
        (["We call it Blue", "fin Har", "bor internally."], [11, 11, 37]),
        (["The Blue", "bird sang."], [4, 18]),
        (["x Bluefin", " ", " Harbo", "!"], [2, 2, 2, 17]),
        (["Bluefin Harbor", ". "], [0, 16]),
        (["nothing here", " at all"], [12, 19]),
        (["B", "\u200b", "o"], [0, 0, 3]),
    ],
)
def test_only_what_could_still_become_a_term_is_held(chunks, safe):
    stream = Blocklist(["Bluefin Harbor"]).stream()
    seen = []
    for chunk in chunks:
        stream.push(chunk)
        seen.append(stream.num_safe)
    assert seen == safe


def test_a_stream_does_not_keep_decided_text():
    stream = Blocklist(["Orca"]).stream()
    for _ in range(1000):
        stream.push("Orcas and orca. ")
    assert stream.num_safe == 16000
    assert stream._folded.text == "" and len(stream._folded._starts) < 4


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("C++", "C++ and (C++), not C++17", [(0, 3), (9, 12)]),
        (".NET", "on .NET, not ASP.NET", [(3, 7)]),
        ("Node.js", "Node.js. node.jsx", [(0, 7)]),
        ("Orca", "Orca's orca_1 orca-2 ORCA", [(0, 4), (14, 18), (21, 25)]),
        ("e", "e\u0301 e", [(3, 4)]),
        ("Café", "CAFE\u0301 Cafe", [(0, 5)]),
        ("Night jar", "night\t\u00a0\u2009jar", [(0, 11)]),
        ("Nightjar", "\u200bNight\u200b\u2060jar\u200b", [(1, 11)]),
        ("straße", "STRASSE straẞe", [(0, 7), (8, 14)]),
        ("fire", "ﬁre", [(0, 3)]),
        ("orca", "日orca日 orca", [(7, 11)]),
        ("海豚", "海豚 是海豚", [(0, 2)]),
        ("1", "½", [(0, 1)]),
    ],
)
def test_whole_words_in_folded_text(term, text, expected):
    assert spans(Blocklist([term]), text) == expected


def test_two_terms_within_one_character_are_one_span():
    assert spans(Blocklist(["1", "2"]), "½ 2") == [(0, 1), (2, 3)]


def test_the_hyphen_is_a_matter_of_taste():
    text = "Orca-2 and Orca\u20102, Orca"
    assert spans(Blocklist(["orca"]), text) == [(0, 4), (11, 15), (19, 23)]
    assert spans(Blocklist(["orca"], hyphen_is_word_char=True), text) == [(19, 23)]


def test_marks_in_another_order_are_the_same_term():
    blocklist = Blocklist(["a\u0323\u0301b"])
    assert spans(blocklist, "a\u0301\u0323b") == [(0, 4)]
    assert streamed(blocklist, ["a\u0301", "\u0323", "b"]) == [Span(0, 4)]


def test_thousands_of_terms_are_told_apart():
    blocklist = Blocklist(f"codename {number}" for number in range(20000))
    assert spans(blocklist, "Codename 19999, codename 20000, codename 7") == [(0, 14), (32, 42)]


def test_an_empty_blocklist_lets_everything_pass():
    stream = Blocklist(()).stream()
    assert stream.push("anything") == () and stream.num_safe == 8
    assert stream.flush() == ()
    assert Blocklist(()).redact("anything") == "anything"


def test_redaction_replaces_every_codename_whole():
    blocklist = Blocklist(["Orca", "Blue Finch"])
    assert blocklist.redact("Ask Blue\n Finch or orca.") == "Ask [redacted] or [redacted]."
    assert blocklist.redact("orca", replacement="") == ""


@given(TERMS, st.text(ALPHABET, max_size=20))
def test_redacted_text_holds_no_codename(terms, text):
    blocklist = Blocklist(terms)
    assert blocklist.find(blocklist.redact(text, replacement=" ※ ")) == ()


@pytest.mark.parametrize("term", ["", "  ", "\u200b", "\t\u00ad"])
def test_an_invisible_term_is_refused(term):
    with pytest.raises(ConfigError, match="must be visible"):
        Blocklist(["Orca", term])


def test_a_file_has_one_term_a_line(tmp_path):
    path = tmp_path / "codenames.txt"
    path.write_bytes("\ufeff# ours\r\n\r\nOrca # payments\r\n  C#  \r\nArea #9\r\n".encode())
    blocklist = Blocklist.load(path)
    assert spans(blocklist, "orca, c#, area #9, payments, ours") == [(0, 4), (6, 8), (10, 17)]


def test_the_hyphen_option_reaches_a_loaded_list(tmp_path):
    path = tmp_path / "codenames.txt"
    path.write_text("Orca", encoding="utf-8")
    assert Blocklist.load(path, hyphen_is_word_char=True).find("Orca-2") == ()


def test_an_invisible_line_is_named(tmp_path):
    path = tmp_path / "codenames.txt"
    path.write_text("Orca\n\u200b\u00ad\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"codenames\.txt:2"):
        Blocklist.load(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"missing\.txt"):
        Blocklist.load(tmp_path / "missing.txt")
    with pytest.raises(ConfigError, match="readable"):
        Blocklist.load(tmp_path)
    damaged = tmp_path / "latin1.txt"
    damaged.write_bytes("Füchsin".encode("latin-1"))
    with pytest.raises(ConfigError, match="UTF-8"):
        Blocklist.load(damaged)


@given(st.text(), st.text())
def test_folding_agrees_with_composed_folding(one, other):
    assert (fold(one) == fold(other)) == (composed(one) == composed(other))


def composed(text):
    folded = FoldedText(0)
    folded.push(text)
    return unicodedata.normalize("NFKC", folded.text).strip(" ")


@given(st.lists(st.text(ALPHABET + "…ﷺ", max_size=4)), st.integers(0, 30))
def test_every_folded_character_knows_its_origin(chunks, dropped):
    text = "".join(chunks)
    folded = FoldedText(5)
    for chunk in chunks:
        folded.push(chunk)
    origins = [folded.origin(index) - 5 for index in range(len(folded.text))]
    assert origins == sorted(origins) and all(0 <= origin < len(text) for origin in origins)
    dropped = min(dropped, len(folded.text))
    folded.drop(dropped)
    assert [folded.origin(i) - 5 for i in range(len(folded.text))] == origins[dropped:]
    assert folded.origin(len(folded.text)) == 5 + len(text)
