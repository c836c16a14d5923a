"""What is known about a draft when the triggers decide."""

from dataclasses import dataclass, replace

import numpy as np

from critic import Critic, CriticScore
from flare_runtime.blocklist import Blocklist
from flare_runtime.entities import Whitelist
from flare_runtime.types import Draft, Span


@dataclass(frozen=True, slots=True)
class Assessment:
    """A draft with its masks and risk.

    ``blocked``: the token is part of a codename, so nothing may count it. ``exempt``: no
    log-probability or entropy trigger counts it: it is blocked, stands verbatim in the context, or
    is blank. One entry a token. ``prefix`` is the sequence that the draft continues.
    """

    draft: Draft
    blocked: tuple[bool, ...]
    exempt: tuple[bool, ...]
    blocked_spans: tuple[Span, ...]
    sentence_index: int
    prefix: tuple[int, ...] = ()
    critic: CriticScore | None = None


def tokens_in(draft: Draft, spans: tuple[Span, ...]) -> tuple[bool, ...]:
    """Which tokens share a non-blank character with one of ``spans``."""
    text = draft.text
    return tuple(
        any(
            text[max(token.start, span.start) : min(token.end, span.end)].strip()
            for span in spans
            if token.start < span.end and span.start < token.end
        )
        for token in draft.token_spans
    )


class Assessor:
    """Masks and scores drafts of one answer."""

    def __init__(self, blocklist: Blocklist, critic: Critic | None) -> None:
        self._blocklist = blocklist
        self._critic = critic

    def assess(
        self,
        draft: Draft,
        whitelist: Whitelist | None,
        sentence_index: int,
        prefix: tuple[int, ...],
    ) -> Assessment:
        """Mask codenames and grounded entities, and let the critic score the rest."""
        blocked_spans = self._blocklist.find(draft.text)
        blocked = tokens_in(draft, blocked_spans)
        grounded = whitelist.grounded(draft.text) if whitelist else ()
        exempt = tuple(
            is_blocked or is_grounded or not token.text.strip()
            for is_blocked, is_grounded, token in zip(
                blocked, tokens_in(draft, grounded), draft.tokens, strict=True
            )
        )
        score = self._score(draft, blocked)
        if score is not None:
            draft = replace(
                draft,
                tokens=tuple(
                    replace(token, risk=float(risk))
                    for token, risk in zip(draft.tokens, score.token_risk, strict=True)
                ),
            )
        return Assessment(draft, blocked, exempt, blocked_spans, sentence_index, prefix, score)

    def _score(self, draft: Draft, blocked: tuple[bool, ...]) -> CriticScore | None:
        if self._critic is None or draft.hidden is None:
            return None
        return self._critic.score(draft.hidden, ~np.asarray(blocked, dtype=np.bool_))
