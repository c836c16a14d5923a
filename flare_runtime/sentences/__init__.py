"""Splits text into sentences, whole or while it is being written."""

from dataclasses import dataclass

from flare_runtime.sentences.lines import NEWLINES
from flare_runtime.sentences.pieces import CutKind
from flare_runtime.sentences.scanner import SentenceScanner
from flare_runtime.types import Span


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place where text may be cut: behind ``end``, in code points, and what ends there.

    ``end`` stands behind the terminator with its closing quotes, brackets, footnote marks and
    emoji, and before the white space.
    """

    end: int
    kind: CutKind


class SentenceSplitter:
    """Splits text that arrives in chunks. The sentences do not depend on the chunks.

    A sentence is complete as soon as nothing that may follow could change it. Time is linear in
    the text; memory holds the unread end and the cuts inside an open quotation.
    """

    def __init__(self) -> None:
        self._scanner = SentenceScanner()
        self._last = ""
        self._held: list[str] = []

    def push(self, chunk: str) -> tuple[Span, ...]:
        """Return the sentences that ``chunk`` completes, as offsets in the whole text."""
        self._held.append(chunk)
        is_repeated = chunk == self._last * len(chunk) and self._last not in NEWLINES
        if not chunk or is_repeated:
            return ()  # "....": more of the same decides nothing, but would be read again and again
        self._last = chunk[-1]
        self._read()
        return self._take()

    def flush(self) -> tuple[Span, ...]:
        """End the text: return the sentences that remain, the last with or without terminator."""
        self._read()
        self._scanner.finish()
        rest = self._scanner.rest()
        return self._take() if rest is None else (*self._take(), rest)

    def _read(self) -> None:
        self._scanner.push("".join(self._held))
        self._held.clear()
        while self._scanner.step(final=False):
            pass

    def _take(self) -> tuple[Span, ...]:
        spans = tuple(piece.span for piece in self._scanner.pieces.done)
        self._scanner.pieces.done.clear()
        return spans


def split_sentences(text: str) -> tuple[Span, ...]:
    """Return the sentences of a complete text; only white space lies between them.

    Headings, table rows, rules and fenced code blocks are sentences of their own, list items and
    paragraphs begin new ones.
    """
    splitter = SentenceSplitter()
    return splitter.push(text) + splitter.flush()


def first_boundary(
    text: str, start: int = 0, final: bool = False, clauses: bool = False
) -> Boundary | None:
    """Return the first safe boundary behind ``start``, or None while there is none.

    Args:
        text: what is written so far.
        start: a place known to be safe, such as the boundary before.
        final: whether the text is complete; otherwise a boundary that more text could undo is none.
        clauses: whether a clause end (comma, semicolon, colon, dash) will do, too.
    """
    scanner = SentenceScanner(text, start, clauses)
    pieces = scanner.pieces.done
    while not pieces and scanner.step(final):
        pass
    if final and not pieces:
        scanner.finish()
    return Boundary(pieces[0].span.end, pieces[0].kind) if pieces else None
