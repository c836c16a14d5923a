from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from flare_runtime.retrieval.readers.markdown import headings, read_markdown


def read(text: str):
    return read_markdown(text.encode(), "a.md")


def parts(text: str):
    document = read(text)
    return [(s.title, document.text[s.start : s.end].strip()) for s in document.sections]


def test_headings_come_from_commonmark_not_from_hashes():
    text = (
        "# One #\n\nTwo\n===\n\n    # code\n\n#tag\n\n```sh\n# no\n```\n\n"
        "> # quoted\n\n- # listed\n\n## Three `x` *y* [z](u) &amp; <b>w</b> {#anchor}\n\n#\n"
    )
    assert headings(text) == ("One", "Two", "Three x y z & w", "")


def test_a_heading_over_two_lines_is_one_line():
    assert headings("Long\ntitle\n---\n") == ("Long title",)


def test_a_reference_link_in_a_heading_is_resolved():
    assert headings("# See [docs]\n\n[docs]: http://e.org\n") == ("See docs",)


def test_paths_follow_levels_even_when_levels_are_jumped():
    assert parts("intro\n# A\na\n### C\nc\n## B\nb\n# D\nd") == [
        ("", "intro"),
        ("A", "a"),
        ("A > C", "c"),
        ("A > B", "b"),
        ("D", "d"),
    ]


def test_sections_without_text_are_left_out_but_stay_in_paths():
    assert parts("# A\n## B\nb\n## C\n") == [("A > B", "b")]


def test_an_empty_heading_adds_nothing_to_the_path():
    assert parts("# A\n## \nb") == [("A", "b")]


def test_front_matter_is_kept_out_and_its_title_heads_the_paths():
    document = read("---\ntitle: Pump\ndate: 2026-13-45\n---\nlead\n# Setup\ntext\n")
    assert document.text == "lead\n# Setup\ntext\n"
    assert [s.title for s in document.sections] == ["Pump", "Pump > Setup"]
    assert document.first_line == 5


def test_a_title_that_repeats_the_first_heading_stands_once():
    assert parts("---\ntitle: pump guide\n---\n# Pump Guide\ntext")[0][0] == "Pump Guide"


def test_front_matter_that_is_no_yaml_still_gives_its_title():
    assert parts('---\ntitle: "Pump: \nx: y: z\n---\ntext') == [("Pump:", "text")]
    assert parts("---\nx: y: z\n---\ntext") == [("", "text")]


def test_front_matter_title_of_another_kind_is_ignored():
    assert parts("---\ntitle: [a, b]\n---\ntext") == [("", "text")]


def test_half_a_surrogate_pair_in_a_title_is_replaced():
    assert parts('---\ntitle: "a\\ud800"\n---\ntext') == [("a?", "text")]


def test_rules_are_not_front_matter():
    assert read("---\n\njust a rule\n\n---\ntext").text.startswith("---")
    assert read("text\n---\na: b\n---\n").text.startswith("text")
    assert headings("---\n# A\n---\n") == ("A",)


@given(st.text(alphabet="#=-`~ >a\n\t", max_size=60))
def test_headings_are_those_of_a_whole_parse(text):
    if text.startswith("---"):
        return
    tokens = MarkdownIt("commonmark").parse(text)
    expected = [
        "".join(child.content or " " for child in inline.children).strip()
        for opening, inline in zip(tokens, tokens[1:], strict=False)
        if opening.type == "heading_open" and opening.level == 0
    ]
    found = [" ".join(name.split()) for name in headings(text)]
    assert found == [" ".join(name.split()) for name in expected]


@given(st.text(alphabet="#=-` ab\n", max_size=80))
def test_sections_are_in_order_and_inside_the_text(text):
    document = read(text)
    edges = [edge for s in document.sections for edge in (s.start, s.end)]
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(document.text) for edge in edges)
