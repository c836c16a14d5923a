"""Triggers that look at no signal: every n-th sentence, and never."""

from flare_runtime.assessment import Assessment
from flare_runtime.triggers import CONFIDENT, Need
from flare_runtime.types import Decision


class EveryNSentencesTrigger:
    """Fires on every n-th sentence, whatever the model thinks of it."""

    name = "every_n_sentences"
    needs: frozenset[Need] = frozenset()

    def __init__(self, n: int) -> None:
        self._n = n

    def decide(self, assessment: Assessment) -> Decision:
        """Score: the sentence's number, counting from 1."""
        number = assessment.sentence_index + 1
        fired = number % self._n == 0
        reason = self.name if fired else CONFIDENT
        return Decision(fired, reason, float(number), float(self._n), in_doubt=False)


class NeverTrigger:
    """Never fires: single-shot retrieval."""

    name = "never"
    needs: frozenset[Need] = frozenset()

    def decide(self, assessment: Assessment) -> Decision:
        """Decide for the draft, always."""
        return Decision(False, CONFIDENT)
