"""Markdown: the source text itself, cut at its headings as CommonMark sees them."""

import re
from functools import cache

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from flare_runtime.retrieval.readers import Document, Heading, sections_between
from flare_runtime.retrieval.readers.text import decode
from flare_runtime.token_text import encodable

_FRONT_MATTER = re.compile(
    r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_KEY_LINE = re.compile(r"\s*[\w-]+[ \t]*:(?:\s|\Z)")
_TITLE_LINE = re.compile(r"^title[ \t]*:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_ANCHOR = re.compile(r"\s*\{#[^{}]*\}$")


def read_markdown(data: bytes, source: str) -> Document:
    """Read Markdown; front matter is kept out of the text, but its title heads every path.

    Raises:
        DocumentError: the bytes look binary.

    """
    whole = decode(data, source)
    start = _front_matter_end(whole)
    title = _front_matter_title(whole[:start])
    text = whole[start:]
    sections = sections_between(find_headings(text), text, title)
    return Document(source, text, sections, first_line=1 + whole.count("\n", 0, start))


def headings(text: str) -> tuple[str, ...]:
    """Return the headings of Markdown ``text`` in order, as plain text, front matter left out."""
    body = text[_front_matter_end(text) :]
    return tuple(heading.text for heading in find_headings(body))


def find_headings(text: str) -> tuple[Heading, ...]:
    """Locate the headings that divide ``text``; those inside quotes and list items do not."""
    blocks, inlines = _parsers()
    references: dict[str, object] = {}
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    tokens = blocks.parse(text, references)
    found: list[Heading] = []
    for opening, inline in zip(tokens, tokens[1:], strict=False):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            first, last = opening.map
            end = min(starts[last], len(text))
            name = _plain(inlines.parseInline(inline.content, references))
            found.append(Heading(name, int(opening.tag[1]), starts[first], end))
    return tuple(found)


@cache
def _parsers() -> tuple[MarkdownIt, MarkdownIt]:
    # Inline markup matters in headings only; parsing it everywhere takes most of the time.
    return MarkdownIt("commonmark").disable("inline"), MarkdownIt("commonmark")


def _plain(tokens: list[Token]) -> str:
    parts: list[str] = []
    for token in tokens[0].children or () if tokens else ():
        if token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type != "html_inline":
            parts.append(token.content)
    return _ANCHOR.sub("", " ".join("".join(parts).split()))


def _front_matter_end(text: str) -> int:
    block = _FRONT_MATTER.match(text)
    if block is None:
        return 0
    is_mapping = isinstance(_parse_yaml(block[1]), dict) or _KEY_LINE.match(block[1])
    return block.end() if is_mapping else 0


def _front_matter_title(block: str) -> str:
    found = _FRONT_MATTER.match(block)
    if found is None:
        return ""
    values = _parse_yaml(found[1])
    if isinstance(values, dict):
        title = values.get("title")
    else:
        line = _TITLE_LINE.search(found[1])
        title = line[1].strip("\"'") if line else None
    # An escape in a quoted title may spell half a surrogate pair, which no file can hold.
    plain = " ".join(title.split()) if isinstance(title, str) else ""
    return encodable(plain)


def _parse_yaml(block: str) -> object:
    """Parse ``block`` with every value a string; None if it is no YAML."""
    try:
        return yaml.load(block, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
