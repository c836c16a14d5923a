"""Plain text and reStructuredText: bytes to text, and headings told by their underlines."""

import codecs
import re

from flare_runtime.errors import DocumentError
from flare_runtime.retrieval.readers import Document, Heading, Section, sections_between

BYTE_ORDER_MARKS = (
    # The UTF-32 mark begins with the UTF-16 mark, so it is tried first.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
FALLBACK_ENCODING = "cp1252"
"""For text without a byte order mark that is not UTF-8: what older Windows programs write."""

MAX_CONTROL_SHARE = 0.02
"""Above this share of control characters a file is taken for binary."""
MIN_NUL_SHARE = 0.2
"""UTF-16 without a mark: so many of the bytes on one side are NUL, and none on the other."""

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_UNDERLINE = re.compile(r"([!-/:-@[-`{-~])\1{2,}[ \t]*")


def read_text(data: bytes, source: str) -> Document:
    """Read plain text as one section.

    Raises:
        DocumentError: the bytes look binary.

    """
    text = decode(data, source)
    return Document(source, text, (Section("", 0, len(text)),), first_line=1)


def read_rst(data: bytes, source: str) -> Document:
    """Read reStructuredText: its source text, cut at section titles.

    Raises:
        DocumentError: the bytes look binary.

    """
    text = decode(data, source)
    return Document(source, text, sections_between(rst_headings(text), text), first_line=1)


def decode(data: bytes, source: str, declared: str | None = None) -> str:
    r"""Turn bytes into text with ``\n`` line ends, without a byte order mark or NUL.

    A byte order mark decides; then the ``declared`` encoding, UTF-8, and ``FALLBACK_ENCODING``.

    Raises:
        DocumentError: the bytes look binary.

    """
    text = _decode_marked(data)
    if text is None:
        text = _decode_unmarked(data, declared)
    if len(_CONTROL.findall(text)) > MAX_CONTROL_SHARE * len(text):
        raise DocumentError(f"{source}: looks binary")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def _decode_marked(data: bytes) -> str | None:
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace")
    return None


def _decode_unmarked(data: bytes, declared: str | None) -> str:
    for encoding in filter(None, (_utf16_without_mark(data), declared, "utf-8")):
        try:
            return data.decode(encoding)
        except (UnicodeError, LookupError):
            continue
    return data.decode(FALLBACK_ENCODING, errors="replace")


def _utf16_without_mark(data: bytes) -> str | None:
    even, odd = data[::2].count(0), data[1::2].count(0)
    if even == 0 and odd > MIN_NUL_SHARE * len(data) / 2:
        return "utf-16-le"
    if odd == 0 and even > MIN_NUL_SHARE * len(data) / 2:
        return "utf-16-be"
    return None


def rst_headings(text: str) -> tuple[Heading, ...]:
    """Find section titles: an unindented line over a rule of punctuation at least as long.

    A title stands at the start, after a blank line, or under a rule of its own. Styles count as
    levels in the order in which they first appear.
    """
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    styles: list[str] = []
    found: list[Heading] = []
    for row in range(1, len(lines)):
        style = _title_style(lines, row)
        if style:
            styles += [style] if style not in styles else []
            first = row - len(style)
            title, level = lines[row - 1].strip(), styles.index(style) + 1
            end = min(starts[row + 1], len(text))
            found.append(Heading(title, level, starts[first], end))
    return tuple(found)


def _title_style(lines: list[str], row: int) -> str:
    """Return the rule's character if ``lines[row]`` underlines a title, doubled if overlined."""
    rule, title = lines[row].rstrip(), lines[row - 1].rstrip()
    if not title or not _UNDERLINE.fullmatch(rule) or _UNDERLINE.fullmatch(title):
        return ""
    if len(rule) < len(title):
        return ""
    above = lines[row - 2].rstrip() if row >= 2 else ""
    if above == rule:
        return rule[0] * 2
    return "" if above or title[0].isspace() else rule[0]
