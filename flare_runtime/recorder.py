"""Builds the turn log from the events of one answer."""

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from flare_runtime.config import FlareConfig
from flare_runtime.events import (
    Abstained,
    Committed,
    Drafted,
    Event,
    FirstHop,
    LookupFinished,
    LookupStarted,
)
from flare_runtime.language_model import LanguageModel, Message
from flare_runtime.stopwatch import Stopwatch
from flare_runtime.turn_log import (
    BlockedRecord,
    HitRecord,
    LookupRecord,
    Outcome,
    SentenceRecord,
    Timings,
    TokenRecord,
    TurnLog,
    Usage,
)


class Recorder:
    """Sees every event once; ``answer`` is the committed text so far."""

    def __init__(
        self,
        question: str,
        history: Sequence[Message],
        config: FlareConfig,
        model: LanguageModel,
        critic_name: str | None,
        stopwatch: Stopwatch,
    ) -> None:
        self._question = question
        self._history = tuple(asdict(message) for message in history)
        self._config = config
        self._model = model
        self._critic_name = critic_name
        self._time = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._stopwatch = stopwatch
        self._first_text_ms: float | None = None
        self.answer = ""
        self._first_hop: tuple[HitRecord, ...] = ()
        self._iterations = 0
        self._started: LookupStarted | None = None
        self._fired = False
        self._lookups: list[LookupRecord] = []
        self._sentences: list[SentenceRecord] = []
        self._tokens: list[TokenRecord] = []

    def see(self, event: Event) -> None:
        """Take in one event."""
        match event:
            case FirstHop():
                self._first_hop = tuple(
                    HitRecord(hit.passage.id, hit.rank, hit.score) for hit in event.hits
                )
            case Drafted():
                self._iterations += 1
                self._fired = self._fired or event.decision.fired
            case LookupStarted():
                self._started = event
            case LookupFinished():
                self._see_lookup(event)
            case Committed():
                self._see_committed(event)
            case Abstained():
                self._add_sentence(event.text, abstained=True)

    def finish(self, outcome: Outcome, usage: Usage) -> TurnLog:
        """Close the record."""
        watch = self._stopwatch
        timings = Timings(
            total=watch.elapsed_ms,
            first_token=self._first_text_ms,
            first_hop=watch.spent_ms("first_hop"),
            decode=watch.spent_ms("decode"),
            critic=watch.spent_ms("critic"),
            retrieval=watch.spent_ms("retrieval"),
            resume=watch.spent_ms("resume"),
        )
        return TurnLog(
            id=uuid.uuid4().hex,
            time=self._time,
            question=self._question,
            history=self._history,
            answer=self.answer,
            outcome=outcome,
            first_hop=self._first_hop,
            iterations=self._iterations,
            lookups=tuple(self._lookups),
            sentences=tuple(self._sentences),
            tokens=tuple(self._tokens) if self._config.log.tokens else None,
            usage=usage,
            timings_ms=timings,
            model=self._model.name,
            engine=self._model.engine,
            critic=self._critic_name,
            config=asdict(self._config),
        )

    def _see_lookup(self, event: LookupFinished) -> None:
        if self._started is None:
            return
        decision = self._started.decision
        self._lookups.append(
            LookupRecord(
                sentence=event.sentence,
                reason=decision.reason,
                score=decision.score,
                threshold=decision.threshold,
                query=self._started.query,
                found=tuple(hit.passage.id for hit in event.hits),
                added=tuple(passage.id for passage in event.added),
                duration_ms=event.duration_ms,
            )
        )
        self._started = None

    def _see_committed(self, event: Committed) -> None:
        assessment = event.assessment
        offset = len(self.answer)
        for token, span, blocked in zip(
            assessment.draft.tokens, assessment.draft.token_spans, assessment.blocked, strict=True
        ):
            self._tokens.append(
                TokenRecord(
                    offset + span.start,
                    offset + span.end,
                    token.logprob,
                    token.entropy,
                    token.risk,
                    blocked,
                )
            )
        self._add_sentence(
            event.text,
            abstained=False,
            risk=assessment.critic.sentence_risk if assessment.critic else None,
            blocked=tuple(
                BlockedRecord(offset + span.start, offset + span.end)
                for span in assessment.blocked_spans
            ),
            supported_by=event.supported_by,
        )

    def _add_sentence(
        self,
        text: str,
        *,
        abstained: bool,
        risk: float | None = None,
        blocked: tuple[BlockedRecord, ...] = (),
        supported_by: tuple[str, ...] = (),
    ) -> None:
        if self._first_text_ms is None:
            self._first_text_ms = self._stopwatch.elapsed_ms
        start = len(self.answer) + len(text) - len(text.lstrip())
        self._sentences.append(
            SentenceRecord(
                text=text.strip(),
                start=start,
                end=start + len(text.strip()),
                risk=risk,
                fired=self._fired,
                blocked=blocked,
                supported_by=supported_by,
                abstained=abstained,
            )
        )
        self._fired = False
        self.answer += text
