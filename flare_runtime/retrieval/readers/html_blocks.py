"""An element tree as lines of text: block elements break the line, inline ones add nothing.

Knows HTML's tags and those of trafilatura's result (head, list, item, row, cell, lb).
"""

from dataclasses import dataclass

from lxml import etree

from flare_runtime.retrieval.readers import Heading

PREFORMATTED = str.maketrans({" ": "␠", "\n": "␊", "\t": "␉"})
"""White space to keep travels as its control picture, which nothing on the way collapses."""
_RESTORED = str.maketrans({"␠": " ", "␊": "\n", "␉": "\t"})

CELL_SEPARATOR = " | "

_LINES = frozenset("br lb hr li item tr row dt dd option caption summary figcaption".split())
_PARAGRAPHS = frozenset(
    "address article aside blockquote body center code dialog details div dl fieldset figure "
    "footer form h1 h2 h3 h4 h5 h6 head header hgroup legend list main menu nav ol p pre quote "
    "search section table tbody tfoot thead ul".split()
)
_CELLS = frozenset(("td", "th", "cell"))


@dataclass(frozen=True, slots=True)
class Blocks:
    """Lines of text and the headings among them."""

    text: str
    headings: tuple[Heading, ...]

    @property
    def num_letters(self) -> int:
        """How many letters and digits there are: a measure of text that markup does not sway."""
        return sum(map(str.isalnum, self.text))


def render_blocks(root: etree._Element) -> Blocks:
    """Write the text below ``root``, a blank line around paragraphs, cells told apart."""
    writer = _Writer()
    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event == "start":
            writer.open(element)
            writer.write(element.text or "")
            continue
        if event == "end":
            writer.close(element)
        if element is not root:
            writer.write(element.tail or "")
    return writer.finish()


class _Writer:
    """Collects words; breaks and blanks wait until the next word shows that they are needed."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._break = ""
        self._has_blank = False
        self._after_cell = False
        self._heading: tuple[int, int] | None = None
        self._headings: list[Heading] = []

    def open(self, element: etree._Element) -> None:
        tag = element.tag
        if tag in _CELLS and self._after_cell:
            self._separate_cells()
        self._break_around(tag)
        level = _heading_level(element)
        if level and self._heading is None:
            self._heading = (level, len(self._parts))

    def close(self, element: etree._Element) -> None:
        tag = element.tag
        if self._heading is not None and _heading_level(element) == self._heading[0]:
            self._end_heading(*self._heading)
        self._break_around(tag)
        if tag in _CELLS or tag in ("tr", "row"):
            self._after_cell = tag in _CELLS

    def write(self, text: str) -> None:
        words = " ".join(text.replace("\u00ad", "").split())
        if words:
            self._has_blank = self._has_blank or text[0].isspace()
            self._flush()
            self._append(words)
        self._has_blank = (self._has_blank and not words) or text[-1:].isspace()

    def finish(self) -> Blocks:
        return Blocks("".join(self._parts).translate(_RESTORED), tuple(self._headings))

    def _break_around(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            self._break = "\n\n"
        elif tag in _LINES:
            self._break = self._break or "\n"

    def _separate_cells(self) -> None:
        # A cell of paragraphs has broken the line already.
        if not self._break and self._parts:
            self._append(CELL_SEPARATOR)
            self._has_blank = False

    def _end_heading(self, level: int, first_part: int) -> None:
        self._heading = None
        written = "".join(self._parts[first_part:]).lstrip()
        if written:
            name = " ".join(written.translate(_RESTORED).split())
            start = self._length - len(written)
            self._headings.append(Heading(name, level, start, self._length))

    def _flush(self) -> None:
        if self._parts:
            self._append(self._break or (" " if self._has_blank else ""))
        self._break, self._has_blank = "", False

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)


def _heading_level(element: etree._Element) -> int:
    tag = element.get("rend", "") if element.tag == "head" else element.tag
    return int(tag[1]) if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456" else 0
