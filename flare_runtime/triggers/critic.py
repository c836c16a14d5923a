"""The trigger on the critic's risk."""

import math

from flare_runtime.assessment import Assessment
from flare_runtime.triggers import ALL_MASKED, CONFIDENT, Need, lacks
from flare_runtime.types import Decision


class CriticTrigger:
    """Fires when the critic's risk of the sentence is above the threshold."""

    name = "critic"
    needs: frozenset[Need] = frozenset({"hidden", "critic"})

    def __init__(self, threshold: float, token_threshold: float) -> None:
        self._threshold = threshold
        self._token_threshold = token_threshold

    def decide(self, assessment: Assessment) -> Decision:
        """Score: the sentence risk in [0, 1]; spans are the tokens at risk."""
        if assessment.critic is None:
            return Decision(bool(assessment.draft.tokens), self.name, None, self._threshold)
        if all(assessment.blocked):
            return Decision(False, ALL_MASKED, None, self._threshold)
        risk = assessment.critic.sentence_risk
        fired = not math.isfinite(risk) or risk > self._threshold
        spans = tuple(
            span
            for span, token_risk, blocked in zip(
                assessment.draft.token_spans,
                assessment.critic.token_risk,
                assessment.blocked,
                strict=True,
            )
            if not blocked and lacks(-float(token_risk), -self._token_threshold)
        )
        return Decision(
            fired, self.name if fired else CONFIDENT, risk, self._threshold, spans if fired else ()
        )
