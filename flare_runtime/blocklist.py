"""Finds codenames in text, whole or while it streams."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import ahocorasick

from flare_runtime.config import BlocklistConfig
from flare_runtime.errors import ConfigError
from flare_runtime.folding import HYPHENS, FoldedText, fold, is_mark, is_word_char
from flare_runtime.types import Span

_COMMENT = re.compile(r"^\s*#.*|\s#\s.*")


class Blocklist:
    """A set of codenames, matched as whole words in folded text, leftmost and longest first.

    Folded: NFKC and case folding, default-ignorable characters dropped, a run of white space equal
    to one blank. Whole: neither neighbour is a letter, a digit, an underscore or a combining mark
    (or a hyphen, with ``hyphen_is_word_char``). Aho-Corasick, so the number of terms costs nothing.
    """

    def __init__(self, terms: Iterable[str], hyphen_is_word_char: bool = False) -> None:
        """Raises ConfigError for a term of which folding leaves nothing."""
        self.hyphen_is_word_char = hyphen_is_word_char
        self.max_length = 0
        """Length of the longest term, folded."""
        self.automaton: Any = None
        """None when there are no terms."""
        folded = set()
        for term in terms:
            folded.add(fold(term))
            if "" in folded:
                raise ConfigError(f"blocklist terms must be visible, was: {term!r}")
        if folded:
            self._build(folded)

    def _build(self, folded: Iterable[str]) -> None:
        self.automaton = ahocorasick.Automaton()
        for term in folded:
            self.automaton.add_word(term, len(term))
            self.max_length = max(self.max_length, len(term))
        self.automaton.make_automaton()

    @classmethod
    def load(cls, path: str | Path, hyphen_is_word_char: bool = False) -> "Blocklist":
        """Read one term a line, UTF-8; blank lines are left out.

        A # starts a comment at the start of a line, or between blanks (C# and #9 are terms).
        Raises ConfigError for a file that cannot be read and for a term that folds to nothing.
        """
        try:
            lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"blocklist must be a readable UTF-8 file, was: {path}") from error
        terms = []
        for number, line in enumerate(lines, start=1):
            term = _COMMENT.sub("", line).strip()
            if term and not fold(term):
                raise ConfigError(
                    f"blocklist terms must be visible, was: {term!r} ({path}:{number})"
                )
            if term:
                terms.append(term)
        return cls(terms, hyphen_is_word_char)

    @classmethod
    def configured(cls, config: BlocklistConfig) -> "Blocklist":
        """Read the configured file; an empty blocklist when none is configured. Raises as load."""
        if not config.file:
            return cls((), config.hyphen_is_word_char)
        return cls.load(config.file, config.hyphen_is_word_char)

    def find(self, text: str) -> tuple[Span, ...]:
        """Return where codenames stand in ``text``, in order, without overlap."""
        stream = self.stream()
        return stream.push(text) + stream.flush()

    def redact(self, text: str, replacement: str = "[redacted]") -> str:
        """Put ``replacement`` in the place of every codename."""
        pieces, position = [], 0
        for span in self.find(text):
            pieces += [text[position : span.start], replacement]
            position = span.end
        return "".join([*pieces, text[position:]])

    def stream(self) -> "BlocklistStream":
        """Start a search in text that arrives in chunks."""
        return BlocklistStream(self)

    def joins_word(self, char: str) -> bool:
        """Say whether a folded character continues the word beside it."""
        return is_word_char(char) or (self.hyphen_is_word_char and char in HYPHENS)


class BlocklistStream:
    """The search of one text. Holds no more of it than could still become a codename."""

    def __init__(self, blocklist: Blocklist) -> None:
        self._blocklist = blocklist
        self._folded = FoldedText(0)
        self._after_word = False
        self._last_end = 0
        self.num_safe = 0
        """How many leading characters are decided: no codename to come reaches back into them."""

    def push(self, chunk: str) -> tuple[Span, ...]:
        """Return the codenames that ``chunk`` makes certain, as offsets in the whole text."""
        if self._blocklist.automaton is None:
            self.num_safe += len(chunk)
            return ()
        self._folded.push(chunk)
        return self._advance(final=False)

    def flush(self) -> tuple[Span, ...]:
        """End the text: return the codenames that only its end decides."""
        return () if self._blocklist.automaton is None else self._advance(final=True)

    def _advance(self, final: bool) -> tuple[Span, ...]:
        live = [] if final else self._live_starts()
        spans, decided = [], 0
        for start, end in self._candidates(final):
            span = Span(self._folded.origin(start), self._folded.origin(end - 1) + 1)
            if start < decided or span.start < self._last_end:
                continue
            if any(decided <= position <= start for position in live):
                break
            spans.append(span)
            decided, self._last_end = end, span.end
        self._settle(next((p for p in live if p >= decided), len(self._folded.text)))
        return tuple(spans)

    def _candidates(self, final: bool) -> Sequence[tuple[int, int]]:
        """Whole-word matches in the folded text, leftmost first and longest before shorter."""
        text, found = self._folded.text, []
        for last, length in self._blocklist.automaton.iter(text):
            start, end = last + 1 - length, last + 1
            ends = final if end == len(text) else not self._blocklist.joins_word(text[end])
            if ends and self._may_start(start):
                found.append((start, end))
        return sorted(found, key=lambda match: (match[0], -match[1]))

    def _live_starts(self) -> list[int]:
        """Where in the folded text a codename may have begun that more text could complete."""
        text = self._folded.text
        length = len(text)
        while length and is_mark(text[length - 1]):  # more marks may yet come before these
            length -= 1
        first = max(0, length - self._blocklist.max_length)
        return [
            start
            for start in range(first, length)
            if self._may_start(start) and self._blocklist.automaton.match(text[start:length])
        ]

    def _may_start(self, start: int) -> bool:
        text = self._folded.text
        before = self._blocklist.joins_word(text[start - 1]) if start else self._after_word
        return not before and not is_mark(text[start])

    def _settle(self, decided: int) -> None:
        self.num_safe = self._folded.origin(decided)
        if decided:
            self._after_word = self._blocklist.joins_word(self._folded.text[decided - 1])
            self._folded.drop(decided)
