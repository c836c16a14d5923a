"""Finds names, numbers and identifiers in text, and those that the context vouches for."""

import unicodedata
from collections.abc import Iterator, Sequence

import regex

from flare_runtime.sentences import split_sentences
from flare_runtime.sentences.word_lists import OPENERS
from flare_runtime.types import Span
from flare_runtime.words import word_spans

__all__ = ["Whitelist", "find_entities", "word_spans"]

_CODE = regex.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", regex.DOTALL)
_POSSESSIVE = regex.compile(r"['’](?:s|S)?\Z")
_INNER_SIGN = regex.compile(r"[_@/+#&]|\w\.\w|^\.")
_MAX_RUN = 8
"""Longer runs of capitalised words are headlines; they are looked up in parts."""


def find_entities(text: str) -> tuple[Span, ...]:
    """Return what names something exactly: it is either right or wrong, never rephrased.

    Those are contents of back-ticks, words with a digit, identifiers (``snake_case``, camelCase,
    ``a.b``, ALL CAPS) and runs of capitalised words. A capitalised word that begins a sentence is
    none by itself, as its capital says nothing.
    """
    words = _words(text)
    initial = _initial_words(text, words)
    code = [Span(*match.span(2)) for match in _CODE.finditer(text)]
    outside = [word for word in words if not any(_within(word, span) for span in code)]
    names = [
        Span(run[0].start, run[-1].end)
        for run in _runs(text, outside)
        if len(run) > 1 or run[0] not in initial or _is_identifier(_slice(text, run[0]))
    ]
    return tuple(sorted([*code, *names], key=lambda span: span.start))


class Whitelist:
    """The entities of a context, to exempt them from log-probability triggers.

    Built once a context; a query costs about as much as splitting the text into words.
    """

    def __init__(self, context: str) -> None:
        self._context = _folded(context)
        words = _words(self._context)
        self._words = {_slice(self._context, word) for word in words}
        self._starts = {word.start for word in words}
        self._ends = {word.end for word in words}
        for word in words:  # "$3.50" vouches for "3.50", and "14%" for "14"
            if self._context[word.start] in "$€£¥":
                self._starts.add(word.start + 1)
            if self._context[word.end - 1] == "%":
                self._ends.add(word.end - 1)

    def grounded(self, text: str) -> tuple[Span, ...]:
        """Return the entities of ``text`` that stand verbatim in the context, as whole words.

        Case counts; Unicode composition and the width of white space do not. Of an entity that
        does not stand there as a whole, the longest parts that do are returned. A capitalised word
        that begins a sentence counts if the context has it with a capital only.
        """
        words = _words(text)
        spans: list[Span] = []
        for entity in find_entities(text):
            spans += self._parts(text, entity, [w for w in words if _within(w, entity)])
        found = set(spans)
        for word in _initial_words(text, words):
            if not any(_within(word, span) for span in found) and self._knows_name(text, word):
                spans.append(word)
        return tuple(sorted(spans, key=lambda span: span.start))

    def _parts(self, text: str, entity: Span, words: Sequence[Span]) -> Iterator[Span]:
        if self._has(_slice(text, entity)):
            yield entity
            return
        first = 0
        while first < len(words):
            last = self._longest(text, words, first)
            if last is not None:
                yield Span(words[first].start, words[last].end)
            first = first + 1 if last is None else last + 1

    def _longest(self, text: str, words: Sequence[Span], first: int) -> int | None:
        """Return the last word of the longest run from ``first`` that the context has."""
        for last in range(min(len(words), first + _MAX_RUN) - 1, first, -1):
            if self._has(text[words[first].start : words[last].end]):
                return last
        word = _slice(text, words[first])
        return first if _is_telling(word) and self._has(word) else None

    def _knows_name(self, text: str, word: Span) -> bool:
        name = _folded(_slice(text, word))
        return name in self._words and name.lower() not in self._words

    def _has(self, entity: str) -> bool:
        """Say whether ``entity`` stands in the context between word boundaries."""
        entity = _folded(entity)
        if not entity:
            return False
        position = self._context.find(entity)
        while position >= 0:
            end = position + len(entity)
            starts = position in self._starts or not entity[0].isalnum()
            if starts and (end in self._ends or not entity[-1].isalnum()):
                return True
            position = self._context.find(entity, position + 1)
        return False


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _slice(text: str, span: Span) -> str:
    return text[span.start : span.end]


def _within(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _words(text: str) -> tuple[Span, ...]:
    """The words of ``text`` without possessive endings."""
    spans = []
    for word in word_spans(text):
        ending = _POSSESSIVE.search(text, word.start, word.end)
        spans.append(Span(word.start, ending.start()) if ending else word)
    return tuple(spans)


def _is_identifier(word: str) -> bool:
    """Digits, inner signs, inner capitals: nothing that prose would write."""
    has_digit = any(char.isdigit() for char in word)
    return has_digit or _INNER_SIGN.search(word) is not None or word[1:] != word[1:].lower()


def _is_telling(word: str) -> bool:
    is_name = word[:1].isupper() and word.lower() not in OPENERS
    return is_name or _is_identifier(word)


def _initial_words(text: str, words: Sequence[Span]) -> tuple[Span, ...]:
    """Capitalised words that begin a sentence and could be names."""
    starts = [sentence.start for sentence in split_sentences(text)]
    firsts, position = [], 0
    for start in starts:
        while position < len(words) and words[position].start < start:
            position += 1
        if position < len(words):
            firsts.append(words[position])
    return tuple(word for word in firsts if _is_telling(_slice(text, word)))


def _runs(text: str, words: Sequence[Span]) -> list[list[Span]]:
    """Group the telling words: those with only white space between them are one name."""
    runs: list[list[Span]] = []
    for word in words:
        if not _is_telling(_slice(text, word)):
            continue
        if runs and not text[runs[-1][-1].end : word.start].strip():
            runs[-1].append(word)
        else:
            runs.append([word])
    return runs
