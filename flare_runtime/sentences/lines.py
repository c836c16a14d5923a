"""Recognises where lines and paragraphs break, and lines that stand for themselves."""

from typing import Literal

import regex

NEWLINES = "\n\r\v\f\x85\u2028\u2029"
_NEWLINE = regex.compile(r"\r\n|\r(?!\n)|[\n\v\f\x85\u2028\u2029]")
_ITEM = r"(?:[-*+•‣◦▪●]|\d{1,3}[.)]|\((?:\d{1,3}|[a-zA-Z])\)|[a-zA-Z]\))[ \t]"
_UNIT = r"#{1,6}[ \t]|\||(?P<rule>[-*_=])(?:[ \t]*(?P=rule)){2,}[ \t]*(?=[\r\n])"
_FENCE = r"(?P<ticks>`{3,})[^`\r\n]*(?=[\r\n])|(?P<tildes>~{3,})[^\r\n]*(?=[\r\n])"
_BLOCK = regex.compile(rf"{_ITEM}|(?P<unit>{_UNIT})|{_FENCE}")
_WINDOW = 256
"""A line that does not show its kind within so many characters is prose."""

LineKind = Literal["prose", "item", "unit", "fence"]
"""``unit``: a heading, table row or rule; it is one sentence, whatever it holds."""


def skip_blanks(text: str, position: int) -> int:
    """Return the first place from ``position`` that holds no white space."""
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def is_paragraph_break(blanks: str) -> bool:
    """Say whether white space holds an empty line."""
    return "\u2029" in blanks or len(_NEWLINE.findall(blanks)) > 1


def line_kind(text: str, start: int, final: bool) -> tuple[LineKind, str] | Literal["wait"]:
    """Return the kind of the line whose first visible character is at ``start``.

    With it goes the run of signs that opens a fence, "" for other kinds.
    """
    window = text[start : start + _WINDOW]
    match = _BLOCK.match(_closed(window, final), partial=not final)
    if match is not None and match.partial:
        if len(window) < _WINDOW:
            return "wait"
        match = None
    if match is None:
        return "prose", ""
    fence = match["ticks"] or match["tildes"]
    if fence:
        return "fence", fence
    return ("unit" if match["unit"] else "item"), ""


def _closed(window: str, final: bool) -> str:
    """End the last line of a text as a newline would."""
    return window + "\n" if final and len(window) < _WINDOW else window


def closes_fence(text: str, start: int, fence: str, final: bool) -> bool | Literal["wait"]:
    """Say whether the line at ``start`` closes the block that ``fence`` opened."""
    window = text[start : start + _WINDOW]
    pattern = rf"[ \t]*{fence[0]}{{{len(fence)},}}[ \t]*(?=[\r\n])"
    match = regex.match(pattern, _closed(window, final), partial=not final)
    if match is not None and match.partial:
        return "wait" if len(window) < _WINDOW else False
    return match is not None


def opens_block(
    text: str, blanks_start: int, start: int, final: bool
) -> Literal["yes", "no", "wait"]:
    """Say whether the white space up to ``start`` ends a paragraph, item or the like."""
    blanks = text[blanks_start:start]
    if is_paragraph_break(blanks):
        return "yes"
    if start == len(text) and not final:
        return "wait"
    if not any(char in NEWLINES for char in blanks):
        return "no"
    kind = line_kind(text, start, final)
    if kind == "wait":
        return "wait"
    return "no" if kind[0] == "prose" else "yes"
