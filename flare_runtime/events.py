"""What happens while an answer is written, in the order in which it happens."""

from dataclasses import dataclass
from typing import Literal

from flare_runtime.assessment import Assessment
from flare_runtime.turn_log import TurnLog
from flare_runtime.types import Decision, Hit, Passage

AbstainScope = Literal["sentence", "answer"]


@dataclass(frozen=True, slots=True)
class FirstHop:
    """The search from the question, and what of it entered the context."""

    query: str
    hits: tuple[Hit, ...]
    added: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Drafted:
    """A draft and what the trigger said of it. It may still be thrown away."""

    assessment: Assessment
    decision: Decision


@dataclass(frozen=True, slots=True)
class LookupStarted:
    """The writer has paused. ``sentence`` counts the sentences before it, abstained ones too."""

    sentence: int
    decision: Decision
    query: str


@dataclass(frozen=True, slots=True)
class LookupFinished:
    """The search is back. ``added`` is what is new in the context; ``error`` says why it failed."""

    sentence: int
    hits: tuple[Hit, ...]
    added: tuple[Passage, ...]
    duration_ms: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class Committed:
    """Text that is now part of the answer and stays. ``start`` is its offset in the answer."""

    text: str
    start: int
    assessment: Assessment
    decision: Decision
    supported_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Abstained:
    """The configured words in the place of what could not be verified."""

    text: str
    start: int
    scope: AbstainScope
    reason: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of the stream, with the record of the whole turn."""

    turn: TurnLog


Event = FirstHop | Drafted | LookupStarted | LookupFinished | Committed | Abstained | Finished
