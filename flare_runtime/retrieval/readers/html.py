"""HTML: boilerplate left out, block elements as lines, headings as a path."""

import copy
import re

from lxml import etree
from lxml import html as lxml_html

from flare_runtime.errors import DocumentError
from flare_runtime.retrieval.readers import Document, sections_between
from flare_runtime.retrieval.readers.html_blocks import PREFORMATTED, Blocks, render_blocks
from flare_runtime.retrieval.readers.text import decode

MIN_LETTERS = 800
"""Below this a page is taken whole: telling boilerplate apart needs a page to weigh."""
MIN_KEPT_OF_MAIN = 0.9
"""trafilatura must keep this share where the page itself marks its main part, or that is taken."""
MIN_KEPT_OF_BODY = 0.5
"""The same where the page marks none, so that much of it may be boilerplate."""

_NO_TEXT = (
    "script", "style", "template", "noscript", "svg", "iframe", "object", "canvas",
    "audio", "video", "select", "button", "textarea",
)  # fmt: skip
_BOILERPLATE = "//nav | //footer | //*[@hidden or @aria-hidden='true' or @role='navigation']"
_HEADING_LINKS = "//*[self::h1 or self::h2 or self::h3 or self::h4 or self::h5 or self::h6]//a"
_MAIN = ("//main", "//*[@role='main']", "//article")
_INLINE = ("code", "kbd", "samp", "tt", "var", "b", "i", "em", "strong")

_DECLARED = re.compile(
    rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.I
)
_DECLARATION_BYTES = 4096

# lxml reads these characters, written out or as numbers, but refuses to write them.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_NUMBERED = re.compile(r"&#(?:x0*([0-9a-f]{1,6})|0*([0-9]{1,7}))(?:;|(?![0-9a-f]))", re.IGNORECASE)


def read_html(data: bytes, source: str) -> Document:
    """Read HTML: the main part of the page, its headings as sections.

    Raises:
        DocumentError: the bytes look binary, or elements are nested thousands deep.

    """
    markup = decode(data, source, _declared_encoding(data))
    page = _parse(markup, source)
    for element in page.xpath(_BOILERPLATE):
        _drop(element)
    blocks = _main_blocks(page)
    if not blocks.text:
        # All of it stood in what usually is boilerplate.
        blocks = render_blocks(_parse(markup, source))
    sections = sections_between(blocks.headings, blocks.text, _page_title(page, blocks))
    return Document(source, blocks.text, sections)


def _declared_encoding(data: bytes) -> str | None:
    found = _DECLARED.search(data[:_DECLARATION_BYTES])
    name = found[1].decode("ascii", errors="replace").lower() if found else ""
    # The declaration was readable as ASCII, so it cannot be UTF-16; browsers read Latin-1 as 1252.
    if name.startswith("utf-16"):
        return None
    return {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252"}.get(
        name, name or None
    )


def _parse(markup: str, source: str) -> etree._Element:
    """Parse and drop what holds no text; white space of ``<pre>`` is marked to be kept."""
    parser = lxml_html.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        page = lxml_html.document_fromstring(_clean(markup).encode("utf-8"), parser=parser)
    except etree.ParserError:
        # lxml's word for a document without a single element.
        return lxml_html.Element("html")
    if parser.error_log.filter_from_fatals():
        # The parser gave up half-way, which it does for elements nested thousands deep.
        raise DocumentError(
            f"{source}: cannot read the HTML: {parser.error_log.last_error.message}"
        )
    etree.strip_elements(page, *_NO_TEXT, with_tail=False)
    for link in page.xpath(_HEADING_LINKS):
        if not any(map(str.isalnum, "".join(link.itertext()))):
            _drop(link)
    etree.strip_tags(page, *_INLINE)
    for element in page.iter("pre"):
        for part in element.iter():
            part.text = (part.text or "").translate(PREFORMATTED)
            if part is not element:
                part.tail = (part.tail or "").translate(PREFORMATTED)
    return page


def _clean(markup: str) -> str:
    def keep(number: re.Match[str]) -> str:
        code = int(number[1], 16) if number[1] else int(number[2])
        return " " if code < 0x110000 and _UNWRITABLE.match(chr(code)) else number[0]

    return _NUMBERED.sub(keep, _UNWRITABLE.sub(" ", markup))


def _drop(element: etree._Element) -> None:
    if element.getparent() is not None:
        element.drop_tree()


def _main_blocks(page: etree._Element) -> Blocks:
    body = page.find("body")
    if body is None:
        return Blocks("", ())
    whole = render_blocks(body)
    if whole.num_letters < MIN_LETTERS:
        return whole
    region = _marked_main(page)
    main = whole if region is None else render_blocks(region)
    share = MIN_KEPT_OF_BODY if region is None else MIN_KEPT_OF_MAIN
    found = _without_boilerplate(page)
    return found if found.num_letters > share * main.num_letters else main


def _marked_main(page: etree._Element) -> etree._Element | None:
    for path in _MAIN:
        found = page.xpath(path)
        if len(found) == 1 and "".join(found[0].itertext()).strip():
            return found[0]
    return None


def _without_boilerplate(page: etree._Element) -> Blocks:
    # Its import takes a third of a second, for nothing where no HTML is read.
    from trafilatura import bare_extraction

    found = bare_extraction(copy.deepcopy(page), favor_recall=True, include_comments=False)
    if found is None or isinstance(found, dict):  # A dictionary only if asked for one.
        return Blocks("", ())
    return render_blocks(found.body)


def _page_title(page: etree._Element, blocks: Blocks) -> str:
    """Return the title that heads every path: none if the text has its own main heading."""
    if any(heading.level == 1 for heading in blocks.headings):
        return ""
    for path in ("//h1", "//title"):
        for element in page.xpath(path):
            name = " ".join("".join(element.itertext()).split())
            if name:
                return name
    return ""
