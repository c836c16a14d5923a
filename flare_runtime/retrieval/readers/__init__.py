"""What every reader gives: a document's plain text and the sections it falls into."""

from dataclasses import dataclass

PATH_SEPARATOR = " > "
"""Stands between the headings of a path: "Guide > Setup > Linux"."""


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a document's text under one heading path, its own heading line left out.

    ``location`` names the place for people where line numbers do not ("page 4").
    """

    title: str
    start: int
    end: int
    location: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """One file as text. Sections are in order and do not overlap; between them stand headings."""

    source: str
    text: str
    sections: tuple[Section, ...]
    first_line: int | None = None
    """Line of the file on which ``text`` begins, from 1; None if text and file differ in lines."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that takes up ``start:end`` of the text; ``level`` 1 is the topmost."""

    text: str
    level: int
    start: int
    end: int


def sections_between(
    headings: tuple[Heading, ...], text: str, title: str = ""
) -> tuple[Section, ...]:
    """Cut ``text`` at its headings; ``title``, the document's own, heads every path.

    Sections of nothing but white space are left out.
    """
    found = [Section(title, 0, headings[0].start if headings else len(text))]
    ends = [heading.start for heading in headings[1:]] + [len(text)]
    path: list[Heading] = []
    for heading, end in zip(headings, ends, strict=False):
        path = [parent for parent in path if parent.level < heading.level] + [heading]
        names = [parent.text for parent in path if parent.text]
        found.append(Section(_join_path(title, names), heading.end, end))
    return tuple(section for section in found if text[section.start : section.end].strip())


def _join_path(title: str, names: list[str]) -> str:
    # Front matter often repeats the first heading.
    repeated = bool(names) and names[0].casefold() == title.casefold()
    return PATH_SEPARATOR.join(names if repeated or not title else [title, *names])
