"""When to look something up: what a trigger is. One module a family of signals."""

import math
from typing import Literal, Protocol

from flare_runtime.assessment import Assessment
from flare_runtime.types import Decision

Need = Literal["logprob", "entropy", "hidden", "critic"]

CONFIDENT = "confident"
"""Reason of a decision that did not fire."""
ALL_MASKED = "all_masked"
"""Reason when every token is blocked or exempt, so that there was nothing to judge."""


class Trigger(Protocol):
    """Decides whether a draft needs a lookup. Any object with these members will do."""

    @property
    def name(self) -> str:
        """What configuration and turn log call it."""
        ...

    @property
    def needs(self) -> frozenset[Need]:
        """Signals it cannot do without."""
        ...

    def decide(self, assessment: Assessment) -> Decision:
        """Decide about one draft."""
        ...


def lacks(confidence: float, threshold: float) -> bool:
    """Whether a confidence is too low. One that is not finite is no confidence at all."""
    return not math.isfinite(confidence) or confidence < threshold
