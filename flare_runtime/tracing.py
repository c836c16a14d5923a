"""Turns a finished turn into the trace that people label and training reads."""

import hashlib
from collections.abc import Sequence

from critic import Trace, TracePassage
from flare_runtime.turn_log import TurnLog
from flare_runtime.types import Passage

SOURCE = "flare ask"


def trace_of_turn(turn: TurnLog, passages: Sequence[Passage]) -> Trace:
    """Make an unlabelled trace; its group is the question, however it was spaced or cased."""
    normalised = " ".join(turn.question.casefold().split())
    return Trace(
        id=turn.id,
        group=hashlib.sha256(normalised.encode("utf-8")).hexdigest()[:16],
        split="",
        source=SOURCE,
        license="",
        generator=turn.model,
        question=turn.question,
        passages=tuple(TracePassage(passage.id, passage.text) for passage in passages),
        answer=turn.answer,
        labelled=False,
        unsupported=(),
        turn=turn.to_dict(),
    )
