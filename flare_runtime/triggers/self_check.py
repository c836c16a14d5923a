"""Asks the generator itself whether a draft lacks a fact, and reads its JSON defensively."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from flare_runtime.assessment import Assessment
from flare_runtime.triggers import CONFIDENT, Need
from flare_runtime.types import Decision

INSTRUCTION = (
    "Check your last sentence against the passages. Reply with JSON only: "
    '{"needs_fact": true or false, "missing": "the fact that the passages do not give"}'
)
YES = frozenset({"true", "yes", "1"})
NO = frozenset({"false", "no", "0", "null", "none", ""})
FLAG = re.compile(r"needs_fact\W+(true|false|yes|no)\b", re.IGNORECASE)

Ask = Callable[[tuple[int, ...], str], str]
"""Puts a follow-up question after a token sequence and returns the model's reply."""


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """What the model said of its own sentence."""

    needs_fact: bool
    missing: str


def parse_self_check(reply: str) -> SelfCheck | None:
    """Read a reply that ought to be JSON; None when it says neither yes nor no."""
    for start in (match.start() for match in re.finditer(r"\{", reply)):
        try:
            value, _ = json.JSONDecoder().raw_decode(reply[start:])
        except (ValueError, RecursionError):
            continue
        flag = _flag(value.get("needs_fact")) if isinstance(value, dict) else None
        if flag is not None:
            missing = value.get("missing")
            return SelfCheck(flag, missing.strip() if isinstance(missing, str) else "")
    match = FLAG.search(reply)
    return SelfCheck(match[1].lower() in YES, "") if match else None


def _flag(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if value is not None else "missing"
    return True if word in YES else False if word in NO else None


class SelfCheckTrigger:
    """Fires when the model says that its sentence needs a fact it does not have.

    A reply that cannot be read fires too: an unknown verdict is never a clean one.
    """

    name = "self_check"
    needs: frozenset[Need] = frozenset()

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def decide(self, assessment: Assessment) -> Decision:
        """Score: 1 when a fact is needed, 0 when not, None when the reply cannot be read."""
        written = tuple(token.id for token in assessment.draft.tokens)
        check = parse_self_check(self._ask((*assessment.prefix, *written), INSTRUCTION))
        if check is None:
            return Decision(True, "self_check_unreadable", None, 0.5)
        return Decision(
            check.needs_fact,
            self.name if check.needs_fact else CONFIDENT,
            float(check.needs_fact),
            0.5,
            missing=check.missing if check.needs_fact else "",
        )
