"""The values that travel through the runtime: tokens, drafts, decisions, passages, hits."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

DraftFinish = Literal["sentence", "clause", "paragraph", "eos", "length"]
Placement = Literal["front", "inline", "tool"]


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token with everything that was known when it was chosen.

    ``text`` is what the token adds to the answer; token texts concatenate to the answer exactly
    ("" while a UTF-8 character is unfinished). ``logprob`` is natural, ``entropy`` in nats over the
    full vocabulary, both from raw logits. ``risk`` is the critic's, None without a critic.
    """

    id: int
    text: str
    logprob: float
    entropy: float
    risk: float | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of Unicode code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A stretch of answer up to a safe boundary, not yet committed.

    ``hidden``: residual streams of the wanted layers at each token's own position,
    *Shape:* ``[T, L, H]``; None when no layer was asked for.
    """

    tokens: tuple[Token, ...]
    finish: DraftFinish
    hidden: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The draft as the answer would show it."""
        return "".join(token.text for token in self.tokens)

    @property
    def token_spans(self) -> tuple[Span, ...]:
        """Where each token stands in ``text``."""
        spans = []
        position = 0
        for token in self.tokens:
            spans.append(Span(position, position + len(token.text)))
            position += len(token.text)
        return tuple(spans)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a draft needs a lookup, and why.

    ``score`` and ``threshold`` are in the trigger's own unit; ``score`` is None when nothing could
    be scored. ``spans`` are the stretches of the draft's text at risk; ``missing`` is what a
    self-check says it lacks. ``in_doubt`` is False when the lookup is due by a schedule and not
    because the draft is unsure; such a draft is never abstained from.
    """

    fired: bool
    reason: str
    score: float | None = None
    threshold: float | None = None
    spans: tuple[Span, ...] = ()
    missing: str = ""
    in_doubt: bool = True


@dataclass(frozen=True, slots=True)
class Passage:
    """One indexed stretch of a document.

    ``id`` is stable across re-indexing (source and content). ``title`` is the path of headings.
    ``start`` and ``end`` locate ``text`` in the document's extracted text, in code points;
    ``location`` says it for people ("lines 12-30", "page 4", "").
    """

    id: str
    text: str
    title: str
    source: str
    start: int
    end: int
    location: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found for a query. ``rank`` counts from 1; a larger ``score`` is better."""

    passage: Passage
    score: float
    rank: int
