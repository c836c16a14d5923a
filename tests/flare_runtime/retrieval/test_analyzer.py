import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.retrieval.analyzer import MAX_CACHED_LENGTH, analyze, analyze_query


def finds(query: str, passage: str) -> bool:
    """Every word of the query has a term in the passage."""
    terms = set(analyze(passage))
    return bool(query.split()) and all(terms & set(analyze_query(word)) for word in query.split())


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Replace the Filter.", ["replace", "the", "filter"]),
        ("(E-4013)", ["e4013", "4013"]),
        ("v1.2.3", ["v1.2.3", "v1", "1.2.3"]),
        ("payments.yaml", ["payments.yaml", "payments", "yaml"]),
        ("snake_case", ["snakecase", "snake", "case"]),
        ("10.0.0.7:8080", ["10.0.0.7", "10", "8080"]),
        ("C++, C# and .NET", ["c++", "c#", "and", ".net", "net"]),
        ("$3.50", ["$3.50", "3.50", "50"]),
        ("€5", ["€5", "5"]),
        ("1,000,000.50 or 1,000", ["1000000.50", "1000000", "50", "or", "1000"]),
        ("don't", ["dont", "don"]),
        ("Ph.D.'s U.S.A.", ["phd", "ph", "usa"]),
        ("user's O’Brien l'eau", ["user", "obrien", "brien", "leau", "eau"]),
        ("__init__ --flag", ["init", "flag"]),
        ("2026-Q2.14", ["2026q2.14", "2026", "q2.14", "q2", "14"]),
        ("a, b; c", ["a", "b", "c"]),
        ("", []),
        (" \n\t…!?—", []),
        ("😀", []),
        ("\ud83d", []),
    ],
)
def test_query_terms(text: str, terms: list[str]) -> None:
    assert analyze_query(text) == terms


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("E-4013", "Error E-4013: door open"),
        ("E4013", "Error E-4013: door open"),
        ("4013", "Error E-4013: door open"),
        ("E\u20114013", "Error E-4013: door open"),
        ("v1.2.3", "since v1.2.3."),
        ("1.2.3", "since v1.2.3."),
        ("1.2", "since v1.2.3."),
        ("max retries", "set maxRetries to 3"),
        ("http server", "HTTPServer"),
        ("500 ms", "waits 500ms"),
        ("payments", "deploy/payments.yaml"),
        ("payments.yaml", "deploy/payments.yaml"),
        ("snake case", "snake_case"),
        ("cafe", "Café"),
        ("café", "cafe"),
        ("CAFE\u0301", "café"),
        ("strasse", "STRASSE straße"),
        ("filter", "ﬁlter"),
        ("izmir", "İzmir"),
        ("naïve", "naive"),
        ("καφές", "ΚΑΦΈΣ"),
        ("softhyphen", "soft\u00adhyphen"),
        ("nightjar", "Night\u200bjar"),
        ("ｆｕｌｌ", "full width"),
        ("rate-limit", "the rate limit"),
        ("C++", "written in C++."),
        ("net", ".NET"),
        ("$3.50", "costs $3.50."),
        ("3.50", "costs $3.50."),
        ("don't", "do not say don’t"),
        ("usa", "U.S.A."),
        ("user", "the user's key"),
        ("ポンプ", "ポンプを交換する"),
        ("ﾎﾟﾝﾌﾟ", "ポンプを交換する"),
        ("弁", "弁を閉める"),
        ("交換", "ポンプを交換する"),
        ("滤芯", "更换滤芯"),
        ("芯", "更换滤芯"),
        ("펌프", "펌프를 교체"),
        ("น้ำ", "ดื่มน้ำเย็น"),
        ("第3章", "第3章を読む"),
    ],
)
def test_query_finds_passage(query: str, passage: str) -> None:
    assert finds(query, passage)


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("C", "written in C++."),
        ("C++", "written in C."),
        ("ポンプ", "電源を入れる"),
        ("電源", "電話をかける"),
        ("retries", "retry"),
        ("3.50", "3.5"),
        ("1.3", "v1.2.3"),
        ("\u0e1b\u0e31\u0e4a\u0e21", "\u0e1b\u0e32"),
        ("ホンフ", "ポンプ"),
    ],
)
def test_query_does_not_find_passage(query: str, passage: str) -> None:
    assert not finds(query, passage)


def test_marks_that_make_another_letter_are_kept() -> None:
    assert analyze("й") != analyze("и")
    assert analyze("हिन्दी") == ["हिन्दी"]
    assert analyze("プ") != analyze("フ")


def test_unspaced_script_gives_characters_and_pairs_in_passages_and_pairs_in_queries() -> None:
    assert analyze("ポンプ") == ["ポ", "ン", "プ", "ポン", "ンプ"]
    assert analyze_query("ポンプ") == ["ポン", "ンプ"]
    assert analyze_query("弁") == ["弁"]


def test_spoken_words_are_not_analysed_twice_over() -> None:
    assert analyze("Close the valve, then close the door.") == [
        "close", "the", "valve", "then", "close", "the", "door",
    ]  # fmt: skip


@given(st.text())
def test_passage_is_filed_under_every_term_a_query_with_its_text_asks_for(text: str) -> None:
    assert not Counter(analyze_query(text)) - Counter(analyze(text))


@given(st.text())
def test_terms_hold_no_blanks_and_nothing_empty(text: str) -> None:
    for term in analyze(text):
        assert term
        assert not any(character.isspace() for character in term)


@given(st.text(alphabet=st.characters(max_codepoint=0x2FF)))
def test_case_and_composition_do_not_matter_to_queries(text: str) -> None:
    decomposed = unicodedata.normalize("NFD", text)
    assert analyze_query(decomposed) == analyze_query(text)


@given(st.lists(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1)))
def test_words_are_analysed_one_by_one(words: list[str]) -> None:
    apart = [term for word in words for term in analyze(word)]
    assert analyze(" ".join(words)) == apart


def test_a_long_run_is_analysed_like_a_short_one() -> None:
    long = "-".join(["abc"] * MAX_CACHED_LENGTH)
    assert analyze(long) == ["abc" * MAX_CACHED_LENGTH] + ["abc"] * MAX_CACHED_LENGTH
