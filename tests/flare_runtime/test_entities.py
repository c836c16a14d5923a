import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.entities import Whitelist, find_entities
from flare_runtime.words import word_spans


def texts(text, spans):
    return [text[span.start : span.end] for span in spans]


def entities(text):
    return texts(text, find_entities(text))


def grounded(context, text):
    return texts(text, Whitelist(context).grounded(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Kelvin rose by 4.", ["Kelvin", "rose", "by", "4"]),
        ("v1.2.3, (2026-Q2.14) $3.50!", ["v1.2.3", "2026-Q2.14", "$3.50"]),
        ("10:30 1,000 a,b a:b 10%", ["10:30", "1,000", "a", "b", "a", "b", "10%"]),
        ("don't O’Neil well-known a/b x_y", ["don't", "O’Neil", "well-known", "a/b", "x_y"]),
        ("C++ C# .NET ASP.NET a@b.org", ["C++", "C#", ".NET", "ASP.NET", "a@b.org"]),
        ("See https://x.org/a?b=1. Or", ["See", "https://x.org/a?b=1", "Or"]),
        ("e\u0301te\u0301 ½ ٣٤", ["e\u0301te\u0301", "½", "٣٤"]),
        ("弁を閉めるポンプ", ["弁", "を", "閉", "め", "る", "ポンプ"]),
        ("… — !", []),
        ("", []),
    ],
)
def test_words(text, expected):
    assert texts(text, word_spans(text)) == expected


@given(st.text())
def test_words_cover_every_letter_once(text):
    position = 0
    for span in word_spans(text):
        assert position <= span.start < span.end
        assert not any(char.isalnum() for char in text[position : span.start])
        position = span.end
    assert not any(char.isalnum() for char in text[position:])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Harbor Engineering team met.", ["Harbor Engineering"]),
        ("Mount Arden is high. Pumps fail.", ["Mount Arden"]),
        ("It rose to 14 on v1.2.3.", ["14", "v1.2.3"]),
        ("Set max_depth, camelCase, NASA.", ["max_depth", "camelCase", "NASA"]),
        ("Run `make all` or ``a `b` c``.", ["make all", "a `b` c"]),
        ("NASA agreed. iPhone sales rose.", ["NASA", "iPhone"]),
        ("We met Orca's team in Oslo.", ["Orca", "Oslo"]),
        ("Nothing here is telling. I am.", []),
        ("", []),
    ],
)
def test_entities(text, expected):
    assert entities(text) == expected


CONTEXT = """Harbor Engineering runs Kestrel 2026-Q2.14 at 10.0.0.7. It costs $3.50 (25%), for 140
units. Use `kubectl  get pods -A` in main.py. The pumps fail. Café Orca's API is on."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Harbor Engineering team.", ["Harbor Engineering"]),
        ("The Harbor Team uses Kestrel.", ["Harbor", "Kestrel"]),
        ("It is 2026-Q2.14, not 14, Q2.14 or 10.0.0.", ["2026-Q2.14"]),
        ("It costs $3.50 or 3.50, so 25% or 25.", ["$3.50", "3.50", "25%", "25"]),
        ("It is 140, not 14 or 1400.", ["140"]),
        ("Run `kubectl get pods -A`.", ["kubectl get pods -A"]),
        ("Run `kubectl get services -A`.", ["kubectl get"]),
        ("Run `get pod`.", []),
        ("Cafe\u0301 Orca, Orca’s API and café.", ["Cafe\u0301 Orca", "Orca", "API"]),
        ("It is kestrel or KESTREL.", []),
        ("Kestrel failed. Pumps fail. The end.", ["Kestrel"]),
        ("It is 140\nunits at Harbor\n  Engineering.", ["140", "Harbor\n  Engineering"]),
        ("Run ` `.", []),
        ("", []),
    ],
)
def test_only_what_stands_verbatim_in_the_context_is_grounded(text, expected):
    assert grounded(CONTEXT, text) == expected


def test_an_empty_context_vouches_for_nothing():
    assert grounded("", "Kestrel 14 and `x`") == []


def test_a_word_that_opens_the_sentence_needs_a_context_without_its_small_form():
    assert grounded("Arden is high.", "Arden fell.") == ["Arden"]
    assert grounded("Arden is an arden.", "Arden fell.") == []
    assert grounded("The pump.", "The end.") == []


WORDS = st.sampled_from(
    ["Kestrel", "kestrel", "The", "14", "140", "2026-Q2.14", "$3.50", "3.50", "`a b`", "a_b", "is."]
)
PROSE = st.lists(WORDS, max_size=8).map(" ".join)


@given(PROSE, PROSE)
def test_what_is_grounded_occurs_in_the_context(context, text):
    folded = " ".join(unicodedata.normalize("NFC", context).split())
    for entity in grounded(context, text):
        before, found, after = folded.partition(entity)
        assert found
        if entity.isdigit():
            assert entity in [word.strip("`.") for word in folded.split()]


@given(PROSE)
def test_a_text_grounds_its_own_entities(text):
    whitelist = Whitelist(text)
    spans = whitelist.grounded(text)
    for entity in find_entities(text):
        assert any(span.start <= entity.start and entity.end <= span.end for span in spans)
