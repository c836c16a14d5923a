import pytest

from flare_runtime.errors import DocumentError
from flare_runtime.retrieval.readers.html import read_html

PROSE = "The pump must be primed with clean water before it is started for the first time. "


def lines(markup: str | bytes):
    data = markup if isinstance(markup, bytes) else markup.encode()
    return [line for line in read_html(data, "a.html").text.split("\n") if line]


def parts(markup: str):
    document = read_html(markup.encode(), "a.html")
    return [(s.title, document.text[s.start : s.end].strip()) for s in document.sections]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<p>un<b>break</b>able, <i>so</i>.</p>", ["unbreakable, so."]),
        ("<div>a<div>b</div>c</div>", ["a", "b", "c"]),
        ("one<br>two<hr>three", ["one", "two", "three"]),
        ("<p> a \n\t b </p><p></p>", ["a b"]),
        ("<p>a <i> b</i> <b> </b> c</p>", ["a b c"]),
        ("<dl><dt>T<dd>D</dl>", ["T", "D"]),
        ("<p>a<!-- x -->b<script>no</script>c</p>", ["abc"]),
        ("<template><p>no</p></template><noscript>no</noscript>yes", ["yes"]),
        ("<p>if (a &lt; b &amp;&amp; c) &#x2192; &copy;</p>", ["if (a < b && c) → ©"]),
        ("<p>hy&shy;phen</p>", ["hyphen"]),
        ("plain text, no tag", ["plain text, no tag"]),
        ("<p>unclosed <b>bold", ["unclosed bold"]),
        ("<h1>Pump <a class=headerlink href=#p>¶</a></h1>x", ["Pump", "x"]),
        ("<h1>See <a href=#p>docs</a></h1>x", ["See docs", "x"]),
        ("<nav>Menu</nav><p>text</p><footer>Imprint</footer>", ["text"]),
        ("<p hidden>no</p><p>text</p>", ["text"]),
        ("<nav>only a menu</nav>", ["only a menu"]),
    ],
)
def test_blocks_break_lines_and_inline_elements_add_nothing(markup, expected):
    assert lines(markup) == expected


def test_characters_that_xml_forbids_do_no_harm():
    markup = "<p>a\x0bb&#1;c&#x1F;d&#0;&#xffff;e</p><pre>f<a title='&#2;'>g</a>\x0ch&#3</pre>"
    text = read_html((markup + "&#9999999;<p>" + PROSE * 20).encode(), "a.html").text
    assert text.replace("\ufffd", "").startswith("a b c d e\n\nfg h")


def test_table_cells_are_told_apart_and_rows_are_lines():
    table = "<table><tr><th>Speed<th>40</tr><tr><td><td>b</td><td>c<p>d</p></td><td>e</table>"
    assert lines(table) == ["Speed | 40", "b | c", "d", "e"]


def test_preformatted_text_keeps_its_white_space():
    text = read_html(
        b"<p>run:</p><pre><code>if x:\n    <b>go</b><span>()\n</span>\tend</code></pre>", "a"
    ).text
    assert text.split("\n\n")[1] == "if x:\n    go()\n\tend"


def test_headings_become_paths():
    page = "<title>Site</title><h1>Guide</h1><p>a</p><h2>Set <i>up</i></h2><p>b</p><h3></h3><p>c"
    assert parts(page) == [("Guide", "a"), ("Guide > Set up", "b\n\nc")]


def test_the_page_title_stands_in_for_a_main_heading():
    assert parts("<title> Site \n guide</title><h2>Part</h2><p>a") == [("Site guide > Part", "a")]
    assert parts("<title></title><p>a") == [("", "a")]


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="koi8-r">', "koi8-r"),
        ('<meta http-equiv=Content-Type content="text/html; charset=shift_jis">', "shift_jis"),
        ('<?xml version="1.0" encoding="windows-1251"?>', "cp1251"),
        ("<meta charset=utf-16>", "utf-8"),
        ("", "utf-8"),
        ("", "utf-16"),
    ],
)
def test_the_encoding_is_the_declared_one(head, encoding):
    assert lines(f"{head}<p>Привет</p>".encode(encoding)) == ["Привет"]


def test_latin_1_is_read_as_browsers_do():
    assert lines("<meta charset=iso-8859-1><p>5 €".encode("cp1252")) == ["5 €"]


@pytest.mark.parametrize("markup", ["<!-- nothing -->", " ", "", "<script>x</script>"])
def test_a_file_without_content_has_no_text(markup):
    document = read_html(markup.encode(), "a.html")
    assert (document.text, document.sections) == ("", ())


def test_a_page_of_frames_has_no_text():
    assert read_html(b"<frameset><frame src=x></frameset>", "a.html").text == ""


def page(main: str) -> str:
    links = "".join(f"<li><a href='/{i}'>Product number {i}</a></li>" for i in range(30))
    return (
        f"<html><head><title>Acme</title></head><body><div class='sidebar'><ul>{links}</ul></div>"
        f"{main}<div id='footer'><p><a href='/c'>Copyright</a></p></div></body></html>"
    )


ARTICLE = (
    f"<h1>Pump guide</h1><p>{PROSE * 5}</p><h2>Priming</h2><p>{PROSE * 5}</p>"
    f"<pre>pump --prime\n  --slow</pre><p>Keep it &lt;5 bar. {PROSE * 3}</p>"
)


def test_boilerplate_is_left_out_of_a_whole_page():
    text = read_html(page(f"<div class='content'>{ARTICLE}</div>").encode(), "a.html").text
    assert "Product number" not in text
    assert "Keep it <5 bar." in text
    assert "pump --prime\n  --slow" in text


def test_what_the_page_marks_as_its_main_part_is_kept_whole():
    # Scraps that boilerplate removal throws away although they are the content.
    scraps = "".join(f"<div><a href='#{i}'>ERR-{i}</a></div>" for i in range(200))
    text = read_html(page(f"<main>{ARTICLE}{scraps}</main>").encode(), "a.html").text
    assert "ERR-0" in text
    assert "ERR-199" in text
    assert "Product number" not in text


def test_a_page_that_boilerplate_removal_gives_up_on_is_taken_whole():
    comments = "".join(f"<div class='comment'><p>{i}. {PROSE}</p></div>" for i in range(30))
    text = read_html(f"<body>{comments}</body>".encode(), "a.html").text
    assert text.count(PROSE.strip()) == 30


def test_a_page_of_links_alone_is_taken_whole():
    links = "".join(f"<a href='/{i}'>Reference entry {i}</a> " for i in range(100))
    text = read_html(f"<body><table><tr><td>{links}</td></tr></table></body>".encode(), "a").text
    assert "Reference entry 0" in text
    assert "Reference entry 99" in text


def test_deep_nesting_is_read_or_refused_but_never_cut_off():
    def nested(depth: int) -> str:
        return "<p>start</p>" + "<div>" * depth + PROSE * 20 + "</div>" * depth + "<p>after</p>"

    assert lines(nested(1500))[-1] == "after"
    with pytest.raises(DocumentError, match="^a.html: cannot read the HTML: Excessive depth"):
        lines(nested(5000))
