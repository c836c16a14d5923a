"""Searches of one answer: the first hop and the lookups, with their caps."""

from collections.abc import Callable
from dataclasses import dataclass

from flare_runtime.assessment import Assessment
from flare_runtime.buffer import EvidenceBuffer
from flare_runtime.config import FlareConfig
from flare_runtime.errors import FlareError
from flare_runtime.query import ForwardQuery
from flare_runtime.retrieval import Retriever
from flare_runtime.stopwatch import Stage, Stopwatch
from flare_runtime.types import Decision, Hit, Passage


@dataclass(frozen=True, slots=True)
class Found:
    """Outcome of one search. ``added`` is new in the context; ``error`` says why it failed."""

    hits: tuple[Hit, ...]
    added: tuple[Passage, ...]
    duration_ms: float
    error: str = ""


class Lookups:
    """Decides whether another lookup is allowed, and runs it through the same pipeline."""

    def __init__(
        self,
        retriever: Retriever,
        buffer: EvidenceBuffer,
        query: ForwardQuery,
        config: FlareConfig,
        redact: Callable[[str], str],
        stopwatch: Stopwatch,
    ) -> None:
        self._retriever = retriever
        self._buffer = buffer
        self._query = query
        self._config = config
        self._redact = redact
        self._stopwatch = stopwatch
        self._num_total = 0
        self._num_of_sentence = 0

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All evidence in the context."""
        return self._buffer.passages

    def first_hop(self, query: str) -> Found:
        """Search before the first word; failures are not caught."""
        self._query.mark_asked(query)
        hits, duration_ms = self._search(query, self._config.retrieval.top_k, "first_hop")
        return Found(hits, self._buffer.open(hits), duration_ms)

    def next_query(self, assessment: Assessment, decision: Decision) -> str | None:
        """Return the forward query of the next lookup, or None when a cap forbids one.

        None, too, when every query that could be built was asked before.
        """
        caps = self._config.lookup
        if (
            self._num_total >= caps.max_per_answer
            or self._num_of_sentence >= caps.max_per_sentence
            or self._buffer.num_passages >= caps.max_passages
            or self._stopwatch.elapsed_ms >= caps.timeout_s * 1000
        ):
            return None
        return self._query.build(assessment, decision)

    def look_up(self, query: str) -> Found:
        """Search for what a draft lacks; a search that fails finds nothing and says why."""
        self._num_total += 1
        self._num_of_sentence += 1
        began = self._stopwatch.elapsed_ms
        try:
            hits, duration_ms = self._search(query, self._depth, "retrieval")
        except FlareError as error:
            return Found((), (), self._stopwatch.elapsed_ms - began, str(error))
        added = self._buffer.add(hits, self._config.lookup.passages)
        return Found(hits, added, duration_ms)

    def next_sentence(self) -> None:
        """Start counting lookups for another sentence."""
        self._num_of_sentence = 0

    @property
    def _depth(self) -> int:
        """Enough hits that some are new even if all that is in the context comes first."""
        return self._buffer.num_passages + self._config.lookup.passages

    def _search(self, query: str, top_k: int, stage: Stage) -> tuple[tuple[Hit, ...], float]:
        before = self._stopwatch.spent_ms(stage)
        with self._stopwatch.stage(stage):
            hits = self._retriever.search(self._redact(query), top_k)
        return hits, self._stopwatch.spent_ms(stage) - before
