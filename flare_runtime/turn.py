"""One turn: the loop over sentences, and what happens when one cannot be verified."""

from collections.abc import Generator, Iterator, Sequence

from flare_runtime.answer import Answer
from flare_runtime.assessment import Assessment, Assessor
from flare_runtime.entities import Whitelist
from flare_runtime.errors import ContextError
from flare_runtime.events import (
    Abstained,
    AbstainScope,
    Committed,
    Drafted,
    Event,
    Finished,
    FirstHop,
    LookupFinished,
    LookupStarted,
)
from flare_runtime.language_model import Message
from flare_runtime.parts import Parts
from flare_runtime.prompt import recent_history
from flare_runtime.query import first_hop_query
from flare_runtime.recorder import Recorder
from flare_runtime.stopwatch import Stopwatch
from flare_runtime.support import supporting
from flare_runtime.triggers.expression import build_trigger
from flare_runtime.turn_log import Outcome, TurnLog, Usage
from flare_runtime.types import Decision, Draft


class Turn:
    """Writes one answer. ``run`` may be called once."""

    def __init__(
        self, parts: Parts, question: str, history: Sequence[Message], lookups: bool
    ) -> None:
        config, model, critic = parts.config, parts.model, parts.critic
        self._parts = parts
        self._question = question
        self._whole_history = tuple(history)
        self._history = recent_history(
            history, lambda text: len(model.encode(text)), config.prompt.history_tokens
        )
        self._stopwatch = Stopwatch()
        layers = critic.layers if critic else ()
        self._answer = Answer(model, config, layers, question, self._history, self._stopwatch)
        self._writer = parts.writer(self._answer)
        self._lookups = parts.lookups(question, self._answer, self._writer, self._stopwatch)
        self._assessor = Assessor(parts.blocklist, critic)
        self._trigger = build_trigger(config.trigger, critic, self._self_check)
        self._is_watched = lookups and parts.watches(question)
        critic_name = critic.name if critic else None
        self._recorder = Recorder(
            question, self._history, config, model, critic_name, self._stopwatch
        )
        self._whitelist: Whitelist | None = None
        self._outcome: Outcome | None = None
        self._is_over = False
        self._num_prompt_tokens = 0
        self._num_committed = 0
        self._num_abstained = 0
        self._last_was_abstained = False

    def run(self) -> Iterator[Event]:
        """Yield every event as it happens; ``Finished`` comes last, before any error."""
        try:
            for event in self._events():
                self._recorder.see(event)
                yield event
        except Exception:
            yield Finished(self._close("failed"))
            raise
        yield Finished(self._close(self._outcome or self._default_outcome()))

    def _events(self) -> Iterator[Event]:
        yield self._first_hop()
        may_abstain = self._parts.config.abstain.mode != "off"
        if may_abstain and (reason := self._nothing_to_stand_on()):
            yield self._abstain_answer(reason)
        yield from self._sentence_by_sentence()
        if may_abstain and not self._recorder.answer:
            yield self._abstain_answer("empty_answer")

    def _sentence_by_sentence(self) -> Iterator[Event]:
        while not self._is_over and self._answer.num_tokens_left > 0:
            draft = self._answer.draft()
            if self._answer.is_over(draft):
                self._answer.discard(draft)
                return
            assessment, decision = self._judge(draft)
            yield Drafted(assessment, decision)
            if decision.fired:
                found = yield from self._look_up(assessment, decision)
                if found:
                    self._answer.discard(draft)
                    continue
            yield from self._settle(assessment, decision)
            if draft.finish in ("eos", "length"):
                return

    def _first_hop(self) -> FirstHop:
        query = first_hop_query(self._question, self._whole_history)
        found = self._lookups.first_hop(query)
        self._answer.open(found.added)
        self._num_prompt_tokens = self._answer.num_prompt_tokens
        self._read_context()
        return FirstHop(query, found.hits, found.added)

    def _nothing_to_stand_on(self) -> str:
        """Reason when the first hop brought no evidence at all."""
        if self._parts.retriever.num_passages == 0:
            return "empty_index"
        return "" if self._lookups.passages else "nothing_relevant"

    def _judge(self, draft: Draft) -> tuple[Assessment, Decision]:
        with self._stopwatch.stage("critic"):
            assessment = self._assessor.assess(
                draft, self._whitelist, self._num_sentences, self._answer.prefix
            )
            if not self._is_watched:
                return assessment, Decision(False, "not_watched")
            return assessment, self._trigger.decide(assessment)

    def _look_up(self, assessment: Assessment, decision: Decision) -> Generator[Event, None, bool]:
        """Pause, search, place what is new; returns whether anything was."""
        query = self._lookups.next_query(assessment, decision)
        if query is None:
            return False
        sentence = self._num_sentences
        yield LookupStarted(sentence, decision, query)
        found = self._lookups.look_up(query)
        yield LookupFinished(sentence, found.hits, found.added, found.duration_ms, found.error)
        if found.added:
            self._answer.place(found.added, self._lookups.passages)
            self._read_context()
        return bool(found.added)

    def _settle(self, assessment: Assessment, decision: Decision) -> Iterator[Event]:
        """Commit a draft, or abstain from one that stays unsure."""
        self._lookups.next_sentence()
        copy = self._parts.config.abstain
        if not (decision.fired and decision.in_doubt) or copy.mode == "off":
            yield self._commit(assessment, decision)
            return
        self._answer.discard(assessment.draft)
        if copy.mode == "sentence":
            yield from self._abstain_sentence(decision.reason)
        else:
            yield self._abstain_answer(decision.reason)

    def _commit(self, assessment: Assessment, decision: Decision) -> Committed:
        draft = assessment.draft
        start = len(self._recorder.answer)
        self._answer.commit(draft)
        self._num_committed += 1
        self._last_was_abstained = False
        return Committed(
            draft.text, start, assessment, decision, supporting(draft.text, self._lookups.passages)
        )

    def _abstain_sentence(self, reason: str) -> Iterator[Abstained]:
        """Say so once; two in a row, or too many, end the answer."""
        copy = self._parts.config.abstain
        self._num_abstained += 1
        self._is_over = self._last_was_abstained or self._num_abstained >= copy.max_sentences
        if not self._last_was_abstained:
            yield self._abstain("sentence", reason, copy.sentence_text)

    def _abstain_answer(self, reason: str) -> Abstained:
        """End the answer with the words of its reason, or hand it on to people."""
        copy = self._parts.config.abstain
        self._is_over = True
        if copy.mode == "escalate":
            self._outcome = "escalated"
            event = self._abstain("answer", reason, copy.escalate_text)
            if self._parts.on_escalate is not None:
                self._parts.on_escalate(self._question, self._recorder.answer + event.text)
            return event
        self._outcome = "abstained"
        words = {
            "empty_index": copy.empty_index_text,
            "nothing_relevant": copy.nothing_relevant_text,
        }
        return self._abstain("answer", reason, words.get(reason, copy.answer_text))

    def _abstain(self, scope: AbstainScope, reason: str, text: str) -> Abstained:
        self._last_was_abstained = True
        return Abstained(self._answer.say(text), len(self._recorder.answer), scope, reason)

    def _close(self, outcome: Outcome) -> TurnLog:
        self._answer.close()
        answer, aside = self._answer.session.usage, self._writer.usage
        usage = Usage(
            prompt_tokens=self._num_prompt_tokens,
            prefilled_tokens=answer.prefilled + aside.prefilled,
            reused_tokens=answer.reused + aside.reused,
            decoded_tokens=self._answer.num_decoded + self._writer.num_decoded,
            discarded_tokens=self._answer.num_discarded,
        )
        return self._recorder.finish(outcome, usage)

    @property
    def _num_sentences(self) -> int:
        return self._num_committed + self._num_abstained

    def _default_outcome(self) -> Outcome:
        return "answered" if self._num_committed or not self._num_abstained else "abstained"

    def _read_context(self) -> None:
        """Take stock of the names and numbers that the context grounds."""
        if self._parts.config.trigger.whitelist:
            evidence = (f"{p.title}\n{p.text}" for p in self._lookups.passages)
            self._whitelist = Whitelist("\n".join([self._question, *evidence]))

    def _self_check(self, token_ids: tuple[int, ...], instruction: str) -> str:
        """Ask; where the window has no room left for that, there is no reply."""
        follow_up = self._answer.next_turn(instruction)
        limit = self._parts.config.trigger.self_check_max_tokens
        try:
            return self._writer.continue_after(token_ids, follow_up, limit)
        except ContextError:
            return ""
