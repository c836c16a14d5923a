"""Decides at one terminator whether a sentence ends there."""

from typing import Literal

import regex

from flare_runtime.sentences.follows import CONTINUERS, is_abbreviation, opens_sentence
from flare_runtime.sentences.lines import opens_block, skip_blanks
from flare_runtime.sentences.pieces import Cut

Verdict = Literal["wait", "no"]
"""``wait``: the text to come decides; ``no``: nothing ends here."""

WIDE = "。！？｡．।॥"
"""Terminators that need no blank after them."""
TERMINATORS = WIDE + ".!?…‼⁇⁈⁉‽؟۔։።፧။៕។"
COMMAS = ",;:،؛，、；：—"
_WIDE_COMMAS = "，、；："
LOOKBACK = 64
"""How many characters before a terminator count; no abbreviation or list marker is longer."""

_RUN = regex.compile(rf"[{TERMINATORS}\p{{M}}\p{{Cf}}]*")
_CLOSERS = regex.compile(
    r"(?:[)\]}\"'”’»›」』）］】〕》〉＂〟*_~\p{M}\p{Cf}]|[“‘«‹](?!\w)|[ \u00a0\u202f][»›](?!\w))*"
)
_QUOTE_CLOSERS = frozenset("\"'”’」』＂〟")
_BRACKET_CLOSERS = frozenset(")]}）］】〕》〉")
_FOOTNOTE = regex.compile(r"\^?\[\^?\d{1,3}(?:[,;–-] ?\d{1,3})*\]|[¹²³⁰⁴-⁹]+")
_EMOJI = regex.compile(
    r"(?:[\p{Extended_Pictographic}\U0001f1e6-\U0001f1ff][\p{M}\p{Cf}\U0001f3fb-\U0001f3ff]*)+"
)
_BLANK = r"[\s\x1c-\x1f]"
_MARKER = regex.compile(
    rf"(?:(?:\A|[\n\r\v\f\x85\u2028\u2029]|[.!?…。！？][)\]\"'”’*_~]*{_BLANK}){_BLANK}*[*_~(]*"
    rf"(?:\d{{1,3}}|[a-zA-Z]|[ivx]{{1,4}})|[:;：]{_BLANK}+[*_~(]*[1ai])\Z"
)
"""The number or letter of a list item, at the start of a line, a sentence or after a colon."""
_MARK = regex.compile(r"[^\S\n\r\v\f\x85\u2028\u2029]+\w{1,4}\Z")
_CJK = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_HIRAGANA = regex.compile(r"\p{Hiragana}")
_SAYING = regex.compile(r"[\p{Han}\p{Hiragana}]{0,3}?[说說道问問答喊叫曰言話云]")
_SAYING_LENGTH = 4


def run_end(text: str, position: int) -> int:
    """Return the end of the terminators that start at ``position``: "?!", "..."."""
    return _match_end(_RUN, text, position + 1)


def judge_terminator(text: str, position: int, final: bool) -> Cut | Verdict:
    """Say whether the sentence ends with the terminator at ``position``.

    The end takes in repeated terminators, closing quotes and brackets, footnote marks and emoji.
    """
    end = _tail_end(text, run_end(text, position), final)
    if end is None or (end == len(text) and not final):
        return "wait"
    if _is_list_marker(text, position):
        return "no"
    next_start = skip_blanks(text, end)
    if next_start == end < len(text):
        return _judge_unspaced(text, position, end, final)
    cut = Cut(end, next_start if next_start < len(text) else None, "sentence")
    breaks = opens_block(text, end, next_start, final)
    if breaks == "wait":
        return "wait"
    if breaks == "yes" or next_start == len(text) or text[position] in WIDE:
        return cut
    is_dot = text[position] == "." and run_end(text, position) == position + 1
    before = text[max(0, position - LOOKBACK) : position]
    opens = opens_sentence(before if is_dot else None, text, next_start, final)
    return cut if opens == "yes" else opens


def judge_comma(text: str, position: int, final: bool) -> Cut | Verdict:
    """Say whether a clause ends with the comma, semicolon, colon or dash at ``position``."""
    end = _match_end(_CLOSERS, text, position + 1)
    next_start = skip_blanks(text, end)
    if next_start == len(text):
        return "no" if final else "wait"
    is_wide = text[position] in _WIDE_COMMAS and not text[end].isdigit()
    return Cut(end, next_start, "clause") if is_wide or next_start > end else "no"


def _match_end(pattern: "regex.Pattern[str]", text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()


def _tail_end(text: str, end: int, final: bool) -> int | None:
    """Return the end of what belongs to a terminator; None when more text decides."""
    while True:
        end = _match_end(_CLOSERS, text, end)
        start = end
        while start < len(text) and text[start] in " \t\u00a0":
            start += 1
        match = _FOOTNOTE.match(text, start, partial=not final) if start < len(text) else None
        if match is not None and match.partial:
            return None
        match = match or _EMOJI.match(text, start)
        if match is None:
            return end
        end = match.end()


def _is_list_marker(text: str, position: int) -> bool:
    """Say whether the dot only follows a number or letter that opens a list item."""
    if text[position] not in ".．" or run_end(text, position) > position + 1:
        return False
    before = text[max(0, position - LOOKBACK) : position]
    if _MARKER.search(before) is None:
        return False
    head = _MARK.sub("", before)  # "Fig. 3." and "No. 5." are no list items
    return not (head.endswith(".") and is_abbreviation(head[:-1]))


def _judge_unspaced(text: str, position: int, end: int, final: bool) -> Cut | Verdict:
    """No white space follows: only between CJK characters can a sentence end here."""
    before, sign, after = text[position - 1 : position], text[position], text[end]
    if sign == "．" and _is_plain(before) and _is_plain(after):
        return "no"
    if sign not in WIDE and not (sign in ".!?" and _CJK.match(before) and _CJK.match(after)):
        return "no"
    tail = text[position + 1 : end]
    if after in CONTINUERS or not _BRACKET_CLOSERS.isdisjoint(tail):
        return "no"
    if _QUOTE_CLOSERS.isdisjoint(tail):
        return Cut(end, end, "sentence")
    return _judge_quotation(text, end, final)


def _is_plain(char: str) -> bool:
    return char.isalnum() and not _CJK.match(char)


def _judge_quotation(text: str, end: int, final: bool) -> Cut | Verdict:
    """After a CJK quotation the sentence goes on with a particle or with who said it."""
    if _HIRAGANA.match(text[end]) or _SAYING.match(text, end):
        return "no"
    if len(text) < end + _SAYING_LENGTH and not final:
        return "wait"
    return Cut(end, end, "sentence")
