"""Folds text for comparison and remembers where every folded character came from."""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

import regex

_OTHER = r"[^\s\x1c-\x7e\p{Default_Ignorable_Code_Point}]+"
_PIECE = regex.compile(
    r"(?P<plain>[\x21-\x7e]+(?: [\x21-\x7e]+)*)"
    r"|(?P<blank>[\s\x1c-\x1f]+)"
    r"|(?P<ignorable>\p{Default_Ignorable_Code_Point}+)"
    rf"|(?P<other>{_OTHER}(?: {_OTHER})*)"
)
HYPHENS = frozenset("-\u2010")


@lru_cache(maxsize=65536)
def _fold_char(char: str) -> str:
    """Case-fold and decompose one character (Unicode 16, D146: compatibility caseless match)."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFD", char).casefold())
    return unicodedata.normalize("NFKD", folded.casefold())


@lru_cache(maxsize=65536)
def is_mark(char: str) -> bool:
    """Say whether ``char`` combines with the one before it."""
    return unicodedata.category(char)[0] == "M"


@lru_cache(maxsize=65536)
def is_word_char(char: str) -> bool:
    """Letters, digits, underscore and combining marks make words."""
    return char.isalnum() or char == "_" or is_mark(char)


def fold(text: str) -> str:
    """Return the folded form of a whole text, without blanks at its ends."""
    folded = FoldedText(0)
    folded.push(text)
    return folded.text.strip(" ")


def _fold_pieces(chunk: str) -> Iterator[tuple[int, int, str]]:
    """Yield where each piece of ``chunk`` starts, how long it is there, and its folded form."""
    for match in _PIECE.finditer(chunk):
        start, piece = match.start(), match.group()
        if match.lastgroup == "plain":
            yield start, len(piece), piece.lower()
        elif match.lastgroup == "blank":
            yield start, len(piece), " "
        elif match.lastgroup == "other":
            folded = [_fold_char(char) for char in piece]
            joined = "".join(folded)
            if len(joined) == len(piece):  # none is empty, so each became one
                yield start, len(piece), joined
            else:
                yield from ((start + i, 1, text) for i, text in enumerate(folded))


class FoldedText:
    """Text folded as it arrives; two texts fold alike where NFKC and case folding make them equal.

    Default-ignorable characters are dropped and a run of white space becomes one blank. The folded
    form is decomposed (NFKD): it only ever grows at its end, which a composed form does not, and it
    finds the same whole words because a word never ends before a combining mark.
    """

    def __init__(self, offset: int) -> None:
        self.text = ""
        self.num_read = offset
        """Offset in the original behind the last character pushed."""
        self._starts = [0]
        self._shifts: list[int | None] = [offset]
        self._origins = [offset]

    def push(self, chunk: str) -> None:
        """Append the folded form of ``chunk``."""
        pieces: list[str] = []
        length = len(self.text)
        is_blank = self.text.endswith(" ")
        for start, width, piece in _fold_pieces(chunk):
            if is_blank and piece.startswith(" "):
                piece = piece[1:]
            if piece:
                is_blank = piece.endswith(" ")
                self._locate(length, self.num_read + start, len(piece) in (1, width))
                pieces.append(piece)
                length += len(piece)
        self.num_read += len(chunk)
        # Decomposed already: this only puts combining marks into their canonical order.
        self.text = unicodedata.normalize("NFKD", self.text + "".join(pieces))

    def _locate(self, start: int, origin: int, runs_along: bool) -> None:
        """Note that the folded characters from ``start`` come from ``origin``.

        ``runs_along``: and the next from the next; otherwise all of them from this one.
        """
        shift = origin - start if runs_along else None
        if shift is None or shift != self._shifts[-1]:
            self._starts.append(start)
            self._shifts.append(shift)
            self._origins.append(origin)

    def origin(self, index: int) -> int:
        """Return the offset in the original of the character that gave ``text[index]``."""
        if index == len(self.text):
            return self.num_read
        segment = bisect_right(self._starts, index) - 1
        shift = self._shifts[segment]
        return self._origins[segment] if shift is None else index + shift

    def drop(self, length: int) -> None:
        """Forget the first ``length`` folded characters."""
        if length == 0:
            return
        first = bisect_right(self._starts, length) - 1
        self.text = self.text[length:]
        self._starts = [max(0, start - length) for start in self._starts[first:]]
        self._shifts = [None if shift is None else shift + length for shift in self._shifts[first:]]
        self._origins = self._origins[first:]
