"""Triggers on the generator's own confidence: log-probability and entropy of its tokens."""

import math

from flare_runtime.assessment import Assessment
from flare_runtime.triggers import ALL_MASKED, CONFIDENT, Need, lacks
from flare_runtime.types import Decision, Span, Token


class MinLogprobTrigger:
    """Fires when any token is less probable than the threshold (FLARE, arXiv 2305.06983, §3.2)."""

    name = "min_logprob"
    needs: frozenset[Need] = frozenset({"logprob"})

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def decide(self, assessment: Assessment) -> Decision:
        """Score: the lowest log-probability of a counted token, in nats."""
        counted = _counted(assessment)
        if not counted:
            return Decision(False, ALL_MASKED, None, self._threshold)
        scores = [token.logprob for token, _ in counted]
        lowest = min(scores, key=lambda score: score if math.isfinite(score) else -math.inf)
        spans = tuple(span for token, span in counted if lacks(token.logprob, self._threshold))
        return Decision(
            bool(spans), self.name if spans else CONFIDENT, lowest, self._threshold, spans
        )


class MeanLogprobTrigger:
    """Fires when the mean log-probability of a draft is below the threshold."""

    name = "mean_logprob"
    needs: frozenset[Need] = frozenset({"logprob"})

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def decide(self, assessment: Assessment) -> Decision:
        """Score: mean log-probability of the counted tokens, in nats."""
        counted = _counted(assessment)
        if not counted:
            return Decision(False, ALL_MASKED, None, self._threshold)
        mean = sum(token.logprob for token, _ in counted) / len(counted)
        fired = lacks(mean, self._threshold)
        spans = tuple(span for token, span in counted if lacks(token.logprob, self._threshold))
        return Decision(
            fired, self.name if fired else CONFIDENT, mean, self._threshold, spans if fired else ()
        )


class EntropyTrigger:
    """Fires when the entropy of a token spikes above the threshold."""

    name = "entropy"
    needs: frozenset[Need] = frozenset({"entropy"})

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def decide(self, assessment: Assessment) -> Decision:
        """Score: the highest entropy of a counted token, in nats."""
        counted = _counted(assessment)
        if not counted:
            return Decision(False, ALL_MASKED, None, self._threshold)
        highest = max(
            (token.entropy for token, _ in counted),
            key=lambda score: score if math.isfinite(score) else math.inf,
        )
        spans = tuple(span for token, span in counted if lacks(-token.entropy, -self._threshold))
        return Decision(
            bool(spans), self.name if spans else CONFIDENT, highest, self._threshold, spans
        )


def _counted(assessment: Assessment) -> list[tuple[Token, Span]]:
    draft = assessment.draft
    triples = zip(draft.tokens, draft.token_spans, assessment.exempt, strict=True)
    return [(token, span) for token, span, exempt in triples if not exempt]
