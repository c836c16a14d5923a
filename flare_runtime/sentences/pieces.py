"""Turns cuts into pieces of text; holds back those that a quotation may yet undo."""

from dataclasses import dataclass
from typing import Literal

from flare_runtime.types import Span

CutKind = Literal["sentence", "clause", "paragraph"]


@dataclass(frozen=True, slots=True)
class Cut:
    """A place where the text may be cut: before ``end``.

    What follows starts at ``next_start``, None while that is not known.
    """

    end: int
    next_start: int | None
    kind: CutKind


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch between two cuts, without white space at its ends, and what ended it."""

    span: Span
    kind: CutKind


class Pieces:
    """Collects the pieces of one text from its cuts, which come in order."""

    def __init__(self) -> None:
        self.done: list[Piece] = []
        """What was cut off and not yet taken away."""
        self.start: int | None = None
        """Where the piece begins that is being read; None before its first visible character."""
        self._held: list[Cut] = []

    def cut(self, cut: Cut) -> None:
        """End the piece that is being read. A cut that leaves nothing of it is none."""
        if self.start is not None and cut.end > self.start:
            self.done.append(Piece(Span(self.start, cut.end), cut.kind))
            self.start = cut.next_start

    def hold(self, cut: Cut) -> None:
        """Keep a cut inside an enclosure until it is known whether the enclosure closes."""
        self._held.append(cut)

    def reject_from(self, position: int) -> None:
        """Drop the held cuts behind ``position``: they lie inside what has closed."""
        while self._held and self._held[-1].end > position:
            self._held.pop()

    def settle(self) -> None:
        """Make the held cuts: what was open around them never closes."""
        for cut in self._held:
            self.cut(cut)
        self._held.clear()
