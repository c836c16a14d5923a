"""PDF: text page by page, cleaned for search, with a record of what could not be extracted."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from flare_runtime.errors import DocumentError
from flare_runtime.retrieval.readers import Document, Section

PdfStatus = Literal["ok", "partial", "no_text"]

PAGE_BREAK = "\n\n"
MAX_NAMED_PAGES = 10
"""A warning names so many pages and counts the rest."""

_LIGATURE = re.compile("[\ufb00-\ufb06]")
# What a font without a character map leaves behind, beside U+FFFD itself.
_DAMAGE = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ufffd\uffff\ue000-\uf8ff\U000f0000-\U0010ffff]"
)
# PDFium writes U+FFFE (older: U+0002) for a hyphen at the end of a line and drops the line break.
_BROKEN_WORD = re.compile(
    "(\\w+)(?:[\u00ad\u2010-][ \\t]*\n|[\u00ad\ufffe\x02][ \\t]*\n?)[ \\t]*(?=(\\w+))"
)
_HYPHENATED = re.compile(r"\w+-\w+")
_STRAY_HYPHEN = re.compile("[\u00ad\ufffe\x02]")
_TRAILING_BLANKS = re.compile(r"[ \t]+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """A page with text. ``number`` counts from 1; ``num_damaged`` of its characters were lost."""

    number: int
    text: str
    num_damaged: int


@dataclass(frozen=True, slots=True)
class PdfText:
    """What a PDF's pages came to."""

    pages: tuple[Page, ...]
    blank_pages: tuple[int, ...]

    @property
    def status(self) -> PdfStatus:
        """``ok`` if every page has text, ``no_text`` if none has."""
        if not self.pages:
            return "no_text"
        return "partial" if self.blank_pages else "ok"

    @property
    def num_damaged(self) -> int:
        """Characters that could not be extracted; each stands as U+FFFD in the text."""
        return sum(page.num_damaged for page in self.pages)


def read_pdf(data: bytes, source: str) -> Document:
    """Read a PDF: one section a page.

    Raises:
        DocumentError: not a PDF, damaged, or locked by a password.

    """
    return lay_out(clean_pages(_extract_pages(data, source)), source)


def clean_pages(texts: Sequence[str]) -> PdfText:
    """Clean the pages' raw texts.

    Ligatures are spelled out, words broken at line ends joined, control and private-use
    characters replaced by U+FFFD and counted, blank pages set apart.
    """
    hyphenated = frozenset(word for text in texts for word in _HYPHENATED.findall(text))
    pages = [_clean_page(number, text, hyphenated) for number, text in enumerate(texts, start=1)]
    return PdfText(
        pages=tuple(page for page in pages if page.text),
        blank_pages=tuple(page.number for page in pages if not page.text),
    )


def lay_out(pdf: PdfText, source: str) -> Document:
    """Join cleaned pages to one document whose sections are the pages."""
    sections: list[Section] = []
    position = 0
    for page in pdf.pages:
        end = position + len(page.text)
        sections.append(Section("", position, end, location=f"page {page.number}"))
        position = end + len(PAGE_BREAK)
    text = PAGE_BREAK.join(page.text for page in pdf.pages)
    return Document(source, text, tuple(sections), warnings=_warnings(pdf))


def _clean_page(number: int, raw: str, hyphenated: frozenset[str]) -> Page:
    def join(broken: re.Match[str]) -> str:
        before, after = broken[1], broken[2]
        # A hyphen before a digit or capital, or one written within a line elsewhere, is meant.
        is_meant = not after[0].islower() or f"{before}-{after}" in hyphenated
        return f"{before}-" if is_meant and "\u00ad" not in broken[0] else before

    text = raw.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    text = _STRAY_HYPHEN.sub("", _BROKEN_WORD.sub(join, text))
    text = _LIGATURE.sub(lambda sign: unicodedata.normalize("NFKC", sign[0]), text)
    text, num_damaged = _DAMAGE.subn("\ufffd", text)
    return Page(number, _TRAILING_BLANKS.sub("", text).strip(), num_damaged)


def _extract_pages(data: bytes, source: str) -> tuple[str, ...]:
    import pypdfium2

    try:
        with pypdfium2.PdfDocument(data) as pdf:
            return tuple(_extract_page(page) for page in pdf)
    except pypdfium2.PdfiumError as error:
        reason = "it is locked by a password" if "password" in str(error).lower() else str(error)
        raise DocumentError(f"{source}: cannot read the PDF: {reason}") from error


def _extract_page(page: "pypdfium2.PdfPage") -> str:  # type: ignore[name-defined]  # noqa: F821
    text_page = page.get_textpage()
    text: str = text_page.get_text_range()
    text_page.close()
    page.close()
    return text


def _warnings(pdf: PdfText) -> tuple[str, ...]:
    found = []
    if pdf.blank_pages and pdf.pages:
        found.append(f"no text on {_name_pages(pdf.blank_pages)} (scanned?)")
    if pdf.num_damaged:
        damaged = tuple(page.number for page in pdf.pages if page.num_damaged)
        found.append(f"{pdf.num_damaged} characters lost on {_name_pages(damaged)}")
    return tuple(found)


def _name_pages(numbers: tuple[int, ...]) -> str:
    named = ", ".join(map(str, numbers[:MAX_NAMED_PAGES]))
    more = f" and {len(numbers) - MAX_NAMED_PAGES} more" if len(numbers) > MAX_NAMED_PAGES else ""
    return f"page{'s' if len(numbers) > 1 else ''} {named}{more}"
