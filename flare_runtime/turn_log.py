"""The record of one turn: one JSON object, complete enough to ask later why it paused."""

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

FORMAT = "flare-turn/1"

Outcome = Literal["answered", "abstained", "escalated", "failed"]


@dataclass(frozen=True, slots=True)
class HitRecord:
    """A passage of the first hop."""

    id: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class LookupRecord:
    """One pause. ``sentence`` is the number of entries in ``sentences`` before it."""

    sentence: int
    reason: str
    score: float | None
    threshold: float | None
    query: str
    found: tuple[str, ...]
    added: tuple[str, ...]
    duration_ms: float


@dataclass(frozen=True, slots=True)
class BlockedRecord:
    """A codename in the answer, by offsets in the answer."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SentenceRecord:
    """One stretch of the answer. ``fired``: the trigger fired on a draft of it."""

    text: str
    start: int
    end: int
    risk: float | None
    fired: bool
    blocked: tuple[BlockedRecord, ...]
    supported_by: tuple[str, ...]
    abstained: bool


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """One token of the answer, by offsets in the answer."""

    start: int
    end: int
    logprob: float
    entropy: float
    risk: float | None
    blocked: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one turn.

    ``prompt_tokens``: the prompt that opened the answer. ``prefilled``: run as input other than
    single decode steps. ``reused``: found in the cache; for each sync, reused + prefilled is the
    length of the sequence. ``decoded`` = committed + discarded + control tokens, control being
    end-of-answer tokens and what the generator wrote beside the answer.
    """

    prompt_tokens: int = 0
    prefilled_tokens: int = 0
    reused_tokens: int = 0
    decoded_tokens: int = 0
    discarded_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall clock in milliseconds.

    ``resume`` is the prefilling of drafts, that of the first prompt included. ``first_hop`` and
    ``retrieval`` include query expansion, ``critic`` includes self-checks. ``first_token`` is when
    the first text was committed, None when none was.
    """

    total: float = 0.0
    first_token: float | None = None
    first_hop: float = 0.0
    decode: float = 0.0
    critic: float = 0.0
    retrieval: float = 0.0
    resume: float = 0.0


@dataclass(frozen=True, slots=True)
class TurnLog:
    """Everything about one turn. Field order is the order in the file."""

    id: str
    time: str
    question: str
    history: tuple[dict[str, str], ...]
    answer: str
    outcome: Outcome
    first_hop: tuple[HitRecord, ...]
    iterations: int
    lookups: tuple[LookupRecord, ...]
    sentences: tuple[SentenceRecord, ...]
    tokens: tuple[TokenRecord, ...] | None
    usage: Usage
    timings_ms: Timings
    model: str
    engine: str
    critic: str | None
    config: dict[str, Any] = field(repr=False)
    format: str = FORMAT

    def to_dict(self) -> dict[str, Any]:
        """Plain values for strict JSON: a number that is not finite becomes null.

        ``tokens`` is left out when the configuration turned them off.
        """
        values = {"format": self.format, **_plain(asdict(self))}
        if self.tokens is None:
            del values["tokens"]
        return values

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
