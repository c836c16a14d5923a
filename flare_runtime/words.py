"""Finds the words of a text: the units that are masked, exempted and looked up as a whole."""

import regex

from flare_runtime.types import Span

_LETTERS = r"(?:(?![\p{Han}\p{Hiragana}\p{Katakana}])[\w\p{M}\p{N}])+"
_WORD = regex.compile(
    r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s<>\"“”`]*[\w/]"  # a URL
    r"|[\p{Han}\p{Hiragana}]\p{M}*|[\p{Katakana}ー]+"  # scripts without blanks
    rf"|(?:[$€£¥]|(?<![\w.])\.(?=\p{{L}}))?{_LETTERS}"
    rf"(?:(?:[-._'’@&/\u2010\u2011]|(?<=\d)[,:](?=\d)){_LETTERS})*(?:%|\+\+|\#(?!\w))?"
)


def word_spans(text: str) -> tuple[Span, ...]:
    """Return the words of ``text``, without the punctuation around them.

    A word goes on through inner punctuation: ``2026-Q2.14``, ``$3.50``, ``don't``, ``main.py``,
    ``C++`` and URLs are one word each. Chinese characters and kana are a word each, katakana runs
    are one.
    """
    return tuple(Span(*match.span()) for match in _WORD.finditer(text))
