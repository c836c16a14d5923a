"""Walks through a text that grows and cuts it where that is safe."""

import regex

from flare_runtime.sentences.enclosures import SIGNS, Enclosures
from flare_runtime.sentences.lines import (
    NEWLINES,
    LineKind,
    closes_fence,
    line_kind,
    opens_block,
    skip_blanks,
)
from flare_runtime.sentences.pieces import Cut, Pieces
from flare_runtime.sentences.rules import (
    COMMAS,
    LOOKBACK,
    TERMINATORS,
    judge_comma,
    judge_terminator,
    run_end,
)
from flare_runtime.types import Span

_TRIM_AFTER = 8192
_LINE_EVENTS = regex.compile(f"[{NEWLINES}]")
_SIGNS = "".join(regex.escape(sign) for sign in sorted(SIGNS))
_SENTENCE_EVENTS = regex.compile(f"[`{NEWLINES}{TERMINATORS}{_SIGNS}]")
_CLAUSE_EVENTS = regex.compile(f"[`{NEWLINES}{TERMINATORS}{_SIGNS}{COMMAS}]")
_BARE_MARKER = regex.compile(r"[*_(]*(?:\d{1,3}|[a-zA-Z])[.)][*_]*")
_LONGEST_MARKER = 12


class SentenceScanner:
    """Reads text once, from left to right, and forgets what can no longer matter.

    Every decision rests on text that later chunks cannot change, or waits for it; so the pieces do
    not depend on the chunks. Cuts inside an enclosure wait until it closes (they were none) or its
    paragraph ends (the opening sign was stray).
    """

    def __init__(self, text: str = "", position: int = 0, clauses: bool = False) -> None:
        self.pieces = Pieces()
        self._text = text
        self._base = 0
        self._position = position
        self._events = _CLAUSE_EVENTS if clauses else _SENTENCE_EVENTS
        head = text[:position].rstrip(" \t")
        self._line: LineKind | None = None if not head or head[-1] in NEWLINES else "prose"
        self._fence = ""
        self._enclosures = Enclosures()

    def push(self, chunk: str) -> None:
        """Append text, without reading it yet."""
        if self._position > _TRIM_AFTER:
            cut = self._position - LOOKBACK
            self._text = self._text[cut:]
            self._base += cut
            self._position -= cut
        self._text += chunk

    def finish(self) -> None:
        """Read to the end of a complete text; whatever remains is the last piece."""
        while self.step(final=True):
            pass
        self.pieces.settle()

    def rest(self) -> Span | None:
        """Return what is left behind the last cut of a finished text, without blanks."""
        start, end = self.pieces.start, self._base + len(self._text.rstrip())
        return None if start is None or end <= start else Span(start, end)

    def step(self, final: bool) -> bool:
        """Read up to the next sign that matters; False when there is none or it has to wait."""
        if self.pieces.start is None:
            start = skip_blanks(self._text, self._position)
            self.pieces.start = self._base + start if start < len(self._text) else None
        if self._line is None:
            return self._begin_line(final)
        events = self._events if self._line in ("prose", "item") else _LINE_EVENTS
        match = events.search(self._text, self._position)
        if match is None:
            self._position = max(self._position, len(self._text.rstrip()))
            return False
        self._position = match.start()
        sign = match.group()
        if sign in NEWLINES:
            return self._newline(final)
        if sign == "`":
            return self._ticks(final)
        if sign in SIGNS:
            return self._sign(sign, final)
        return self._end_sign(sign, final)

    def _begin_line(self, final: bool) -> bool:
        self._position = skip_blanks(self._text, self._position)
        if self._position == len(self._text):
            return False
        kind = line_kind(self._text, self._position, final)
        if kind == "wait":
            return False
        self._line, self._fence = kind
        return True

    def _newline(self, final: bool) -> bool:
        text, start = self._text, skip_blanks(self._text, self._position)
        if self._line == "fence":
            return self._fenced_line(start, final)
        breaks = "yes" if self._line == "unit" else opens_block(text, self._position, start, final)
        if breaks == "wait":
            return False
        if breaks == "yes":
            self._break_paragraph()
        self._line = None if breaks == "yes" else "prose"
        self._position = start
        return True

    def _fenced_line(self, start: int, final: bool) -> bool:
        closes = closes_fence(self._text, start, self._fence, final)
        if closes == "wait":
            return False
        if closes:
            self._line = "unit"
        self._position = start
        return True

    def _break_paragraph(self) -> None:
        self.pieces.settle()
        self._enclosures.clear()
        end = self._position
        while end and self._text[end - 1].isspace():
            end -= 1
        start = end if self.pieces.start is None else self.pieces.start - self._base
        if end - start < _LONGEST_MARKER and _BARE_MARKER.fullmatch(self._text, start, end):
            return  # "1." alone is no sentence
        self.pieces.cut(Cut(self._base + end, None, "paragraph"))

    def _ticks(self, final: bool) -> bool:
        end = self._position
        while self._text[end : end + 1] == "`":
            end += 1
        if end == len(self._text) and not final:
            return False
        run = self._text[self._position : end]
        self._reject(self._enclosures.ticks(run, self._base + self._position))
        self._position = end
        return True

    def _sign(self, sign: str, final: bool) -> bool:
        position = self._position
        if position + 1 == len(self._text) and not final:
            return False
        before = self._text[max(0, position - 1) : position]
        around = (before, self._text[position + 1 : position + 2])
        self._reject(self._enclosures.sign(sign, around, self._base + position))
        self._position += 1
        return True

    def _end_sign(self, sign: str, final: bool) -> bool:
        judge = judge_comma if sign in COMMAS else judge_terminator
        verdict = judge(self._text, self._position, final)
        if verdict == "wait":
            return False
        if isinstance(verdict, Cut):
            self._propose(verdict)
            self._position = verdict.end
        else:
            self._position = run_end(self._text, self._position)
        return True

    def _propose(self, cut: Cut) -> None:
        for closer in self._text[self._position + 1 : cut.end]:
            self._reject(self._enclosures.close(closer))
        next_start = None if cut.next_start is None else self._base + cut.next_start
        cut = Cut(self._base + cut.end, next_start, cut.kind)
        if self._enclosures.is_open:
            self.pieces.hold(cut)
        else:
            self.pieces.cut(cut)

    def _reject(self, enclosure_start: int | None) -> None:
        if enclosure_start is not None:
            self.pieces.reject_from(enclosure_start)
