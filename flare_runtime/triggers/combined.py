"""Any or all of several triggers."""

from collections.abc import Sequence
from typing import Literal

from flare_runtime.assessment import Assessment
from flare_runtime.triggers import Need, Trigger
from flare_runtime.types import Decision, Span


class CombinedTrigger:
    """``any`` or ``all`` of several triggers; stops asking once the outcome is known."""

    def __init__(self, name: Literal["any", "all"], parts: Sequence[Trigger]) -> None:
        self._settles = name == "any"
        self._parts = tuple(parts)
        self.name = f"{name}({', '.join(part.name for part in parts)})"
        self.needs: frozenset[Need] = frozenset().union(*(part.needs for part in parts))

    def decide(self, assessment: Assessment) -> Decision:
        """Take the decision of the part that settled it, with the spans of all that fired."""
        fired: list[Decision] = []
        for part in self._parts:
            decision = part.decide(assessment)
            if decision.fired:
                fired.append(decision)
            if decision.fired == self._settles:
                return decision
        if self._settles:
            return decision
        return _merge(self.name, fired)


def _merge(name: str, decisions: Sequence[Decision]) -> Decision:
    spans = {(span.start, span.end) for decision in decisions for span in decision.spans}
    last = decisions[-1]
    return Decision(
        True,
        name,
        last.score,
        last.threshold,
        tuple(Span(*span) for span in sorted(spans)),
        next((decision.missing for decision in decisions if decision.missing), ""),
        any(decision.in_doubt for decision in decisions),
    )
