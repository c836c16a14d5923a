import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.errors import DocumentError
from flare_runtime.retrieval.readers.text import decode, read_rst, read_text, rst_headings


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides_and_goes(mark, encoding):
    assert decode(mark + "Pümp 泵".encode(encoding), "a.txt") == "Pümp 泵"
    assert decode(mark, "a.txt") == ""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_without_a_mark_the_encoding_is_recognised(encoding):
    assert decode("Pümp – ok".encode(encoding), "a.txt") == "Pümp – ok"


def test_other_bytes_are_read_as_windows_1252():
    assert decode("“5 €” für".encode("cp1252"), "a.txt") == "“5 €” für"
    assert decode(b"caf\xe9 \x81", "a.txt") == "café \ufffd"


def test_a_declared_encoding_counts_unless_it_is_unknown_or_wrong():
    assert decode("Привет".encode("koi8-r"), "a", declared="koi8-r") == "Привет"
    assert decode("ü".encode(), "a", declared="no-such") == "ü"
    assert decode("ü".encode(), "a", declared="ascii") == "ü"


def test_a_damaged_tail_does_not_stop_reading():
    assert decode(codecs.BOM_UTF16_LE + "ab".encode("utf-16-le") + b"\x00", "a") == "ab\ufffd"


def test_line_ends_become_newlines_and_a_stray_nul_is_made_visible():
    assert decode(b"a\r\nb\rc\n" + b"x" * 100 + b"\0", "a") == "a\nb\nc\n" + "x" * 100 + "\ufffd"


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", bytes(range(256)) * 8, b"\0" * 64]
)
def test_binary_content_is_refused(data):
    with pytest.raises(DocumentError, match="^a.md: looks binary$"):
        read_text(data, "a.md")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_utf8_text_comes_back_as_it_was(text):
    document = read_text(b"x" + text.encode(), "a.txt")
    assert document.text == "x" + text
    assert [(s.start, s.end) for s in document.sections] == [(0, len(text) + 1)]


RST = """\
=====
Title
=====

Intro
over two lines.

Part
----

text
=======  ===
simple   tab
=======  ===

.. code::

    Not a title
    ===========

Sub
~~~
sub text

Longer than its rule
----

end
"""


def test_rst_titles_are_found_by_their_rules():
    found = [(h.text, h.level) for h in rst_headings(RST)]
    assert found == [("Title", 1), ("Part", 2), ("Sub", 3)]


def test_rst_becomes_sections():
    document = read_rst(RST.encode(), "a.rst")
    titles = [s.title for s in document.sections]
    assert titles == ["Title", "Title > Part", "Title > Part > Sub"]
    first = document.sections[0]
    assert document.text[first.start : first.end].strip() == "Intro\nover two lines."


def test_rst_title_at_the_very_end():
    assert [h.text for h in rst_headings("Title\n=====")] == ["Title"]
    assert rst_headings("no title\nhere\n====") == ()
    assert rst_headings("") == ()
