"""Decides by the words around it whether white space after a terminator parts two sentences."""

from typing import Literal

import regex

from flare_runtime.sentences.word_lists import (
    END_BEFORE_CAPITAL,
    END_BEFORE_OPENER,
    NEED_NUMBER,
    NEVER_END,
    OPENERS,
)

Answer = Literal["yes", "no", "wait"]
CONTINUERS = frozenset(",;:.!?…)]}%&/\\=+|、，。；：」』）】-–—")
"""No sentence starts with one of these."""

_LEADERS = regex.compile(r"[(\[{\"'“‘„‚«‹»›「『（【《¿¡*_~<>#\p{Cf}]*")
_WORD = regex.compile(r"[\p{L}\p{M}]+")
_LONGEST_WORD = 20
_TOKEN_START = regex.compile(r"[\s\x1c-\x1f(\[{\"'“‘„«*_~/—–]")
_DOTTED = regex.compile(r"\p{L}(?:\.\p{L})+")


def opens_sentence(before: str | None, text: str, start: int, final: bool) -> Answer:
    """Say whether a sentence starts at ``text[start]``.

    No sentence starts with a small letter, unless the word is an identifier (iPhone): "approx.
    five", "Yahoo! is" and "... and so on" are commoner than sentences that begin so.

    Args:
        before: what stands before a single full stop; None for other terminators.
        text: the text so far.
        start: where the first visible character after the white space is.
        final: whether the text is complete; otherwise the answer may be to wait.
    """
    leaders = _LEADERS.match(text, start)
    first = leaders.end() if leaders else start
    if first == len(text):
        return "yes" if final else "wait"
    word = _WORD.match(text, first, first + _LONGEST_WORD)
    end = word.end() if word else first
    is_whole = final or end < len(text) or end == first + _LONGEST_WORD
    token = "" if before is None else _last_token(before)
    if _is_in(NEVER_END, token):
        return "no"
    if _is_in(END_BEFORE_CAPITAL, token):
        return "no" if text[first].islower() or text[first].isdigit() else "yes"
    if _is_in(NEED_NUMBER, token):
        return _after_number_sign(text, first, end, is_whole)
    if _may_be_abbreviation(token):
        return _opener(text, first, end, is_whole)
    return _plain(text, first, end, is_whole)


def is_abbreviation(before: str) -> bool:
    """Say whether ``before``, the text up to a full stop, ends in a known abbreviation."""
    token = _last_token(before)
    is_listed = any(_is_in(words, token) for words in (NEVER_END, END_BEFORE_CAPITAL, NEED_NUMBER))
    return is_listed or _may_be_abbreviation(token)


def _last_token(before: str) -> str:
    return _TOKEN_START.split(before)[-1]


def _is_in(words: frozenset[str], token: str) -> bool:
    return token in words or token.lower() in words


def _may_be_abbreviation(token: str) -> bool:
    is_initial = len(token) == 1 and token.isupper()
    is_dotted = _DOTTED.fullmatch(token) is not None
    return is_initial or is_dotted or _is_in(END_BEFORE_OPENER, token)


def _after_number_sign(text: str, first: int, end: int, is_whole: bool) -> Answer:
    """After "No." or "Fig." comes a number or a letter, or the word was a plain one."""
    if text[first].isdigit():
        return "no"
    if end <= first + 1 and not is_whole:
        return "wait"
    is_word = text[first] in "AI" and text[end : end + 1] in ("", " ", "'", "’")
    is_letter = end == first + 1 and not is_word
    return "no" if is_letter else _plain(text, first, end, is_whole)


def _opener(text: str, first: int, end: int, is_whole: bool) -> Answer:
    """After a possible abbreviation only a word that opens sentences does so."""
    if not text[first].isupper():
        return "no"
    if not is_whole:
        return "wait"
    is_initial = text[end : end + 1] == "."
    return "yes" if text[first:end].lower() in OPENERS and not is_initial else "no"


def _plain(text: str, first: int, end: int, is_whole: bool) -> Answer:
    if not text[first].islower():
        return "no" if text[first] in CONTINUERS else "yes"
    word = text[first:end]
    if word != word.lower():
        return "yes"
    return "no" if is_whole else "wait"
