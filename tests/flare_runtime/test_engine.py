import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from fakes import FixedRetriever, PlannedModel, WordCritic, passage

from flare_runtime.blocklist import Blocklist
from flare_runtime.config import FlareConfig
from flare_runtime.engine import FlareEngine
from flare_runtime.errors import (
    ConfigError,
    ContextError,
    CorpusIndexError,
    SignalError,
)
from flare_runtime.events import (
    Abstained,
    Committed,
    Drafted,
    Event,
    Finished,
    FirstHop,
    LookupFinished,
    LookupStarted,
)
from flare_runtime.language_model import Forward, Message
from flare_runtime.settings import load_config
from flare_runtime.turn_log import TurnLog
from flare_runtime.types import Hit

GOLDEN = Path(__file__).parent.parent / "golden"

RUNBOOK = passage("runbook", "Roll out payments with helm. Use the values file of the chart.")
RELEASE = passage("release", "The values file of the chart is values-prod-2026q2.yaml.")
ROTA = passage("rota", "The payments team is on call.")
QUESTION = "How do I roll out payments?"


def retriever() -> FixedRetriever:
    return FixedRetriever({"payments": RUNBOOK, "values file": RELEASE})


def config(*overrides: str) -> FlareConfig:
    return load_config(None, {}, overrides)


def needs_release(text: str) -> str:
    """Guesses the file until the release page is in the context."""
    file = "values-prod-2026q2.yaml." if RELEASE.text in text else "?v9.yaml."
    return f"Roll out payments with helm. The values file is {file} Done then."


def described(event: Event) -> dict[str, object]:
    """What a golden file keeps of an event: everything but times, ids of the turn and settings."""
    match event:
        case FirstHop():
            body = {
                "query": event.query,
                "hits": [hit.passage.id for hit in event.hits],
                "added": [found.id for found in event.added],
            }
        case Drafted():
            body = {
                "text": event.assessment.draft.text,
                "finish": event.assessment.draft.finish,
                "fired": event.decision.fired,
                "reason": event.decision.reason,
                "score": event.decision.score and round(event.decision.score, 3),
                "spans": [[span.start, span.end] for span in event.decision.spans],
                "blocked": [[s.start, s.end] for s in event.assessment.blocked_spans],
            }
        case LookupStarted():
            body = {"sentence": event.sentence, "query": event.query}
        case LookupFinished():
            body = {
                "sentence": event.sentence,
                "hits": [hit.passage.id for hit in event.hits],
                "added": [found.id for found in event.added],
                "error": event.error,
            }
        case Committed():
            body = {
                "text": event.text,
                "start": event.start,
                "supported_by": list(event.supported_by),
            }
        case Abstained():
            body = {
                "text": event.text,
                "start": event.start,
                "scope": event.scope,
                "reason": event.reason,
            }
        case Finished():
            turn = event.turn
            body = {
                "answer": turn.answer,
                "outcome": turn.outcome,
                "iterations": turn.iterations,
                "lookups": len(turn.lookups),
                "usage": asdict(turn.usage),
            }
    return {"event": type(event).__name__, **body}


def confident() -> FlareEngine:
    plan = "Roll out payments with helm. Use the values file."
    return FlareEngine(PlannedModel(plan), retriever())


def looked_up() -> FlareEngine:
    return FlareEngine(PlannedModel(needs_release), retriever())


def blocklisted() -> FlareEngine:
    plan = "Ask the ?Nightjar team about payments. It is ?Nightjar again."
    return FlareEngine(PlannedModel(plan), retriever(), blocklist=Blocklist(["Nightjar"]))


def all_masked() -> FlareEngine:
    """Every word is unsure, so the masked query is empty and the slots are asked for."""
    plan = "?Maybe ?values ?file ?7."
    return FlareEngine(PlannedModel(plan), retriever())


def cap_reached() -> FlareEngine:
    plan = "Roll out payments with helm. The values file is ?v9.yaml. The team is ?blue."
    overrides = ["lookup.max_per_answer=1", "abstain.mode=answer"]
    return FlareEngine(PlannedModel(plan), retriever(), config(*overrides))


def nothing_new() -> FlareEngine:
    plan = "Roll out payments with ?kubectl. Then wait."
    return FlareEngine(PlannedModel(plan), FixedRetriever({"payments": RUNBOOK}))


def empty_index() -> FlareEngine:
    return FlareEngine(PlannedModel("Anything."), FixedRetriever())


PATHS = [confident, looked_up, blocklisted, all_masked, cap_reached, nothing_new, empty_index]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
def test_golden_events(path: Callable[[], FlareEngine], update_golden: bool) -> None:
    lines = [json.dumps(described(e), ensure_ascii=False) for e in path().stream(QUESTION)]
    text = "\n".join(lines) + "\n"
    file = GOLDEN / f"{path.__name__}.jsonl"
    if update_golden:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
def test_the_answer_is_what_was_streamed(path: Callable[[], FlareEngine]) -> None:
    events = list(path().stream(QUESTION))
    shown = [event for event in events if isinstance(event, Committed | Abstained)]
    turn = path().answer(QUESTION)
    assert "".join(event.text for event in shown) == turn.answer
    assert [event.start for event in shown] == [
        sum(len(earlier.text) for earlier in shown[:index]) for index in range(len(shown))
    ]
    for sentence in turn.sentences:
        assert turn.answer[sentence.start : sentence.end] == sentence.text
    assert isinstance(events[0], FirstHop)
    assert isinstance(events[-1], Finished)


def usage_engine(
    placement: str, plan: Callable[[str], str] | str
) -> tuple[PlannedModel, FlareEngine]:
    model = PlannedModel(plan)
    return model, FlareEngine(model, retriever(), config(f"evidence.placement={placement}"))


LOOKED_UP = "Roll out payments with helm. The values file is values-prod-2026q2.yaml. Done then."


@pytest.mark.parametrize("placement", ["front", "inline", "tool"])
def test_usage_adds_up_to_what_the_model_ran(placement: str) -> None:
    model, engine = usage_engine(placement, needs_release)
    turn = engine.answer(QUESTION)
    tokens = turn.tokens
    assert tokens is not None
    committed, end_of_answer = len(tokens), 1
    assert turn.usage.decoded_tokens == (committed + turn.usage.discarded_tokens + end_of_answer)
    stepped = sum(1 for run in model.runs if run == 1)
    assert sum(model.runs) == turn.usage.prefilled_tokens + stepped
    assert len(turn.lookups) == 1
    assert turn.answer == LOOKED_UP


def test_inline_prefills_only_the_evidence_and_its_tags() -> None:
    model, engine = usage_engine("inline", needs_release)
    turn = engine.answer(QUESTION)
    block = model.encode(f"\n<evidence>\n# release\n{RELEASE.text}\n</evidence>")
    prefills = [run for run in model.runs if run > 1]
    assert prefills == [turn.usage.prompt_tokens, len(block)]
    assert turn.usage.prefilled_tokens == turn.usage.prompt_tokens + len(block)
    assert turn.answer == LOOKED_UP


def test_without_lookup_every_token_runs_once() -> None:
    model, engine = usage_engine("front", "Roll out payments with helm. Use the values file.")
    turn = engine.answer(QUESTION)
    words = len(model.encode(turn.answer))
    assert model.runs == [turn.usage.prompt_tokens] + [1] * words
    assert turn.usage.discarded_tokens == 0
    assert turn.usage.decoded_tokens == words + 1


def test_committed_text_is_never_retracted() -> None:
    """A draft that made the writer pause was not shown before it was certain."""
    shown = ""
    for event in looked_up().stream(QUESTION):
        if isinstance(event, LookupStarted):
            assert "v9" not in shown
        if isinstance(event, Committed):
            shown += event.text
    assert "v9" not in shown


def test_a_lookup_keeps_to_the_pipeline_of_the_first_hop() -> None:
    finder = retriever()
    FlareEngine(PlannedModel(needs_release), finder).answer(QUESTION)
    assert finder.queries == [QUESTION, f"{QUESTION} The values file is"]


def test_nothing_relevant_is_not_an_empty_index() -> None:
    """abst-001, abst-002: the reason tells them apart."""
    off_topic = FlareEngine(PlannedModel("Anything."), FixedRetriever({"whales": ROTA}))
    nothing = off_topic.answer(QUESTION)
    empty = empty_index().answer(QUESTION)
    assert (nothing.outcome, empty.outcome) == ("abstained", "abstained")
    assert nothing.answer == config().abstain.nothing_relevant_text
    assert empty.answer == config().abstain.empty_index_text
    events = list(off_topic.stream(QUESTION))
    assert [e.reason for e in events if isinstance(e, Abstained)] == ["nothing_relevant"]


def test_abst_004_evidence_that_is_relevant_is_used() -> None:
    turn = confident().answer(QUESTION)
    assert turn.outcome == "answered"
    assert [hit.id for hit in turn.first_hop] == ["runbook"]


def test_abstention_can_be_turned_off() -> None:
    engine = FlareEngine(PlannedModel("From memory."), FixedRetriever(), config("abstain.mode=off"))
    turn = engine.answer(QUESTION)
    assert (turn.outcome, turn.answer) == ("answered", "From memory.")


UNSURE = "Roll out payments with helm. The team is ?blue. The day is ?Monday. Bye now."


@pytest.mark.parametrize(
    ("mode", "outcome", "answer"),
    [
        ("sentence", "answered", "Roll out payments with helm. I cannot verify this in the docs."),
        ("answer", "abstained", "Roll out payments with helm. I cannot verify this in the docs."),
        (
            "escalate",
            "escalated",
            "Roll out payments with helm. I cannot verify this in the docs and have passed it on.",
        ),
        (
            "off",
            "answered",
            "Roll out payments with helm. The team is blue. The day is Monday. Bye now.",
        ),
    ],
)
def test_abstention_modes(mode: str, outcome: str, answer: str) -> None:
    passed_on: list[tuple[str, str]] = []
    engine = FlareEngine(
        PlannedModel(UNSURE),
        FixedRetriever({"payments": RUNBOOK}),
        config(f"abstain.mode={mode}"),
        on_escalate=lambda question, text: passed_on.append((question, text)),
    )
    turn = engine.answer(QUESTION)
    assert (turn.outcome, turn.answer) == (outcome, answer)
    assert passed_on == ([(QUESTION, answer)] if mode == "escalate" else [])


def test_an_answer_goes_on_behind_a_sentence_that_cannot_be_verified() -> None:
    def plan(text: str) -> str:
        written = text.rpartition("<s>assistant\n")[2]
        opens = "Helm works. The team is ?blue. Left out."
        return " Then wait." if "verify" in written else opens

    engine = FlareEngine(PlannedModel(plan), FixedRetriever({"payments": RUNBOOK}))
    turn = engine.answer(QUESTION)
    assert turn.answer == "Helm works. I cannot verify this in the docs. Then wait."
    assert [s.abstained for s in turn.sentences] == [False, True, False]
    assert [s.fired for s in turn.sentences] == [False, True, False]
    assert turn.outcome == "answered"


def test_an_answer_of_nothing_but_abstention_is_abstained() -> None:
    engine = FlareEngine(PlannedModel("It is ?blue."), FixedRetriever({"payments": RUNBOOK}))
    assert engine.answer(QUESTION).outcome == "abstained"


@pytest.mark.parametrize("cap", [0, 1, 2])
def test_lookups_are_capped(cap: int) -> None:
    passages = {f"fact{n}": passage(f"p{n}", f"Text {n}.") for n in range(9)}
    plan = " ".join(f"Say ?fact{n} now." for n in range(9))
    engine = FlareEngine(
        PlannedModel(plan),
        FixedRetriever({"payments": RUNBOOK, **passages}),
        config(f"lookup.max_per_answer={cap}", "abstain.mode=off", "query.mask_below=0"),
    )
    turn = engine.answer(QUESTION)
    assert len(turn.lookups) == cap
    assert turn.answer.startswith("Say fact0 now.")


def test_time_is_capped() -> None:
    engine = FlareEngine(PlannedModel(needs_release), retriever(), config("lookup.timeout_s=1e-9"))
    assert engine.answer(QUESTION).lookups == ()


def test_passages_are_capped() -> None:
    engine = FlareEngine(PlannedModel(needs_release), retriever(), config("lookup.max_passages=1"))
    assert engine.answer(QUESTION).lookups == ()


def test_no_query_is_asked_twice() -> None:
    finder = FixedRetriever({"payments": RUNBOOK})
    engine = FlareEngine(
        PlannedModel("It is ?blue. It is ?blue, too."), finder, config("abstain.mode=off")
    )
    engine.answer(QUESTION)
    assert len(finder.queries) == len(set(finder.queries)) == 3


@pytest.mark.parametrize(
    ("lookups", "overrides"),
    [(False, []), (True, ['lookup.skip_questions=["^How do I"]'])],
    ids=["by request", "by class"],
)
def test_a_question_can_be_told_not_to_look_up(lookups: bool, overrides: list[str]) -> None:
    finder = retriever()
    engine = FlareEngine(PlannedModel(needs_release), finder, config(*overrides))
    turn = engine.answer(QUESTION, lookups=lookups)
    assert finder.queries == [QUESTION]
    assert turn.answer == "Roll out payments with helm. The values file is v9.yaml. Done then."


def test_a_search_that_fails_is_reported_and_the_answer_goes_on() -> None:
    class Failing(FixedRetriever):
        def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
            if "values file" in query:
                raise CorpusIndexError("the index is gone")
            return super().search(query, top_k)

    engine = FlareEngine(PlannedModel(needs_release), Failing({"payments": RUNBOOK}))
    events = list(engine.stream(QUESTION))
    (finished,) = [event for event in events if isinstance(event, LookupFinished)]
    assert finished.error == "the index is gone"
    turn = engine.answer(QUESTION)
    assert turn.answer.startswith("Roll out payments with helm. I cannot verify this")
    assert turn.lookups[0].found == ()


def test_a_first_hop_that_fails_fails_the_turn_with_a_record() -> None:
    class Broken(FixedRetriever):
        def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
            raise CorpusIndexError("the index is gone")

    events: list[Event] = []
    with pytest.raises(CorpusIndexError, match="the index is gone"):
        for event in FlareEngine(PlannedModel("x"), Broken({"a": RUNBOOK})).stream(QUESTION):
            events.append(event)
    (finished,) = events
    assert isinstance(finished, Finished)
    assert finished.turn.outcome == "failed"


def test_a_prompt_beyond_the_context_window_is_an_error() -> None:
    model = PlannedModel("x")
    model.context_window = 300
    with pytest.raises(ContextError, match="prompt alone exceeds the budget"):
        FlareEngine(model, retriever()).answer("why " * 200)


def test_history_is_in_the_prompt_within_its_budget() -> None:
    model = PlannedModel("Helm.")
    engine = FlareEngine(model, retriever(), config("prompt.history_tokens=7"))
    history = [
        Message("user", "one two three four five six"),
        Message("assistant", "seven"),
        Message("user", "Which chart is it?"),
        Message("assistant", "payments run well"),
    ]
    turn = engine.answer("How are payments?", history)
    assert "payments run well" in model.prompts[0]
    assert "one two" not in model.prompts[0]
    assert [message["role"] for message in turn.history] == ["user", "assistant"]


def test_a_follow_up_is_condensed_with_the_whole_history() -> None:
    finder = retriever()
    engine = FlareEngine(PlannedModel("Helm."), finder, config("prompt.history_tokens=0"))
    history = [Message("user", "How do I roll out payments?"), Message("assistant", "Helm.")]
    engine.answer("And in staging?", history)
    assert finder.queries == ["How do I roll out payments? And in staging?"]


class Spelling(PlannedModel):
    """Writes its plan byte by byte: ids 10 to 265."""

    def encode(self, text: str) -> tuple[int, ...]:
        marks = {"</s>": 0, "<s>": 1}
        pieces = re.split("(</?s>)", text)
        return tuple(
            id_
            for piece in pieces
            for id_ in ([marks[piece]] if piece in marks else [10 + b for b in piece.encode()])
        )

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id - 10]) if 10 <= token_id < 266 else b""

    def forward(self, token_ids, cache, layers=(), num_logits=1):  # type: ignore[no-untyped-def]
        cache.ids.extend(token_ids)
        self.runs.append(len(token_ids))
        opened = len(cache.ids) - 1 - cache.ids[::-1].index(1) + len("assistant\n")
        written = bytes(i - 10 for i in cache.ids[opened + 1 :] if i >= 10)
        plan = self._plan("").encode()
        follows = plan[len(written)] + 10 if len(written) < len(plan) else 0
        logits = np.zeros(300, dtype=np.float32)
        logits[follows] = 30
        return Forward(logits[np.newaxis], None)


@pytest.mark.parametrize(
    "plan",
    [
        "完了。次は検査。終わり。",
        "Done. Élan is next. “Ünder” it. 🦊 ends.",
        "Größe. Ärger.\n\n- Öl\n- Übung. Ende.",
    ],
)
def test_characters_split_over_tokens_survive_every_boundary(plan: str) -> None:
    turn = FlareEngine(Spelling(plan), retriever()).answer(QUESTION)
    assert turn.answer == plan
    assert turn.iterations > 1


@pytest.mark.parametrize("limit", range(1, 30))
def test_the_length_limit_never_cuts_a_word(limit: int) -> None:
    plan = "The file is values-prod.yaml. Use it."
    overrides = [f"decode.max_new_tokens={limit}"]
    turn = FlareEngine(Spelling(plan), retriever(), config(*overrides)).answer(QUESTION)
    assert plan.startswith(turn.answer)
    first_word = len("The")
    if limit >= first_word:
        assert (
            plan[len(turn.answer) : len(turn.answer) + 1].isspace() or turn.answer == plan[:limit]
        )
        assert not plan[len(turn.answer) :][:1].isalnum() or limit < first_word
    tokens = len(turn.tokens or ())
    assert turn.usage.decoded_tokens == tokens + turn.usage.discarded_tokens


def test_a_question_that_is_no_text_is_answered_all_the_same() -> None:
    turn = FlareEngine(PlannedModel("Helm."), retriever()).answer("How are payments \ud800?")
    assert turn.question == "How are payments ??"
    assert json.loads(turn.to_json())["answer"] == "Helm."


@pytest.mark.parametrize("placement", ["front", "inline", "tool"])
@pytest.mark.parametrize("trigger", ["min_logprob", "self_check"])
@pytest.mark.parametrize("window", range(60, 320, 20))
def test_no_window_is_overrun_once_an_answer_has_begun(
    placement: str, trigger: str, window: int
) -> None:
    """Either the question does not fit at all, or the answer comes to its end."""
    model = PlannedModel("Helm is ?blue. It is ?green here. All is ?red now.")
    model.context_window = window
    overrides = [
        f"evidence.placement={placement}", f"trigger.when={trigger}", "decode.max_new_tokens=20",
    ]  # fmt: skip
    finder = FixedRetriever({"payments": RUNBOOK, "helm": RELEASE, "it": ROTA})
    shown: list[Event] = []
    try:
        for event in FlareEngine(model, finder, config(*overrides)).stream(QUESTION):
            shown.append(event)
    except ContextError as error:
        assert "prompt alone exceeds" in str(error)
        assert [type(event) for event in shown] == [Finished]
    else:
        assert shown[-1].turn.outcome in ("answered", "abstained")  # type: ignore[union-attr]


def test_a_lookup_by_schedule_is_no_doubt() -> None:
    """Every sentence is looked up for once, and none is abstained from."""
    finder = FixedRetriever({"payments": RUNBOOK, "chart": RELEASE, "team": ROTA})
    plan = "Roll out payments. Read the chart. Ask the team."
    turn = FlareEngine(PlannedModel(plan), finder, config("trigger.when=every_n_sentences")).answer(
        QUESTION
    )
    assert turn.answer == plan
    assert len(turn.lookups) == 3
    assert turn.outcome == "answered"


def test_an_empty_answer_is_an_abstention() -> None:
    turn = FlareEngine(PlannedModel(""), retriever()).answer(QUESTION)
    assert (turn.outcome, turn.answer) == ("abstained", config().abstain.answer_text)
    silent = FlareEngine(PlannedModel(""), retriever(), config("abstain.mode=off"))
    assert silent.answer(QUESTION).answer == ""


def test_escalation_covers_what_is_not_in_the_docs_at_all() -> None:
    engine = FlareEngine(PlannedModel("x"), FixedRetriever(), config("abstain.mode=escalate"))
    turn = engine.answer(QUESTION)
    assert (turn.outcome, turn.answer) == ("escalated", config().abstain.escalate_text)


def test_any_failure_ends_the_stream_with_a_record() -> None:
    class Broken(FixedRetriever):
        def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
            raise RuntimeError("no route")

    events: list[Event] = []
    with pytest.raises(RuntimeError, match="no route"):
        for event in FlareEngine(PlannedModel("x"), Broken({"a": RUNBOOK})).stream(QUESTION):
            events.append(event)
    (finished,) = events
    assert isinstance(finished, Finished)
    assert finished.turn.outcome == "failed"


def test_the_configured_blocklist_is_read(tmp_path: Path) -> None:
    file = tmp_path / "codenames.txt"
    file.write_text("Nightjar\n", encoding="utf-8")
    engine = FlareEngine(
        PlannedModel("Ask ?Nightjar."), retriever(), config(f"blocklist.file={file}")
    )
    assert engine.answer(QUESTION).lookups == ()


def test_tables_are_no_repetition() -> None:
    plan = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"
    assert FlareEngine(PlannedModel(plan), retriever()).answer(QUESTION).answer == plan


def test_what_the_generator_writes_beside_the_answer_counts_as_control() -> None:
    reply = '{"needs_fact": false}'

    def plan(text: str) -> str:
        asked = "Check your last sentence" in text.rpartition("<s>user")[2]
        return reply if asked else "Use helm. Done now."

    model = PlannedModel(plan)
    usage = (
        FlareEngine(model, retriever(), config("trigger.when=self_check")).answer(QUESTION).usage
    )
    committed = len(model.encode("Use helm. Done now."))
    one_check = len(model.encode(reply)) + 1
    assert usage.decoded_tokens == committed + usage.discarded_tokens + 1 + 2 * one_check
    assert sum(model.runs) >= usage.prefilled_tokens + committed + 2 * (one_check - 1)


def test_a_repeated_sentence_ends_the_answer() -> None:
    plan = "Use helm. Use helm. Use helm."
    assert FlareEngine(PlannedModel(plan), retriever()).answer(QUESTION).answer == "Use helm."
    looping = FlareEngine(PlannedModel(plan), retriever(), config("decode.stop_on_repeat=false"))
    assert looping.answer(QUESTION).answer == plan


def test_the_length_limit_ends_the_answer() -> None:
    engine = FlareEngine(
        PlannedModel("One two three four five."), retriever(), config("decode.max_new_tokens=3")
    )
    turn = engine.answer(QUESTION)
    assert (turn.answer, turn.outcome) == ("One two three", "answered")
    assert turn.iterations == 1
    assert turn.usage.decoded_tokens == 3 + turn.usage.discarded_tokens


def test_the_critic_gates_the_loop() -> None:
    model = PlannedModel("Helm is right. It is blue paint.")
    (risky,) = model.encode(" blue")
    critic = WordCritic({risky: 0.9})
    engine = FlareEngine(
        model,
        FixedRetriever({"payments": RUNBOOK, "paint": ROTA}),
        config("trigger.when=critic"),
        critic=critic,
    )
    events = list(engine.stream(QUESTION))
    (started,) = [event for event in events if isinstance(event, LookupStarted)]
    assert started.decision.reason == "critic"
    assert started.query == f"{QUESTION} It is paint."
    turn = events[-1].turn  # type: ignore[union-attr]
    assert turn.critic == "word-critic"
    assert turn.sentences[0].risk == pytest.approx(0.1)
    assert turn.tokens[0].risk == pytest.approx(0.1)


def test_the_critic_does_not_count_codenames() -> None:
    model = PlannedModel("It is blue paint.")
    (risky,) = model.encode(" blue")
    engine = FlareEngine(
        model,
        retriever(),
        config("trigger.when=critic"),
        critic=WordCritic({risky: 0.9}),
        blocklist=Blocklist(["blue"]),
    )
    turn = engine.answer(QUESTION)
    assert turn.lookups == ()
    ((start, end),) = [(b.start, b.end) for b in turn.sentences[0].blocked]
    assert turn.answer[start:end] == "blue"
    assert [t.blocked for t in turn.tokens] == [False, False, True, False]  # type: ignore[union-attr]


def test_a_trigger_without_its_signal_is_refused() -> None:
    with pytest.raises(SignalError, match="'critic' needs critic, which planned does not give"):
        FlareEngine(PlannedModel("x"), retriever(), config("trigger.when=critic"))

    class TextOnly(PlannedModel):
        signals = frozenset()

    with pytest.raises(SignalError, match="needs logprob"):
        FlareEngine(TextOnly("x"), retriever())


def test_an_unknown_trigger_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown trigger 'magic'"):
        FlareEngine(PlannedModel("x"), retriever(), config("trigger.when=magic"))


def test_names_that_stand_in_the_context_are_exempt() -> None:
    plan = "The file is ?values-prod-2026q2.yaml."
    finder = FixedRetriever({"payments": RELEASE})
    assert FlareEngine(PlannedModel(plan), finder).answer(QUESTION).lookups == ()
    strict = FlareEngine(PlannedModel(plan), finder, config("trigger.whitelist=false"))
    assert strict.answer(QUESTION).sentences[0].fired


@pytest.mark.parametrize("remote", [False, True])
def test_codenames_stay_here_when_so_configured(remote: bool) -> None:
    """Contract 6: neither a remote retriever nor a remote model's query prompt sees one."""
    finder, model = retriever(), PlannedModel("Ask Nightjar for the ?values file.")
    finder.is_remote = model.is_remote = remote
    engine = FlareEngine(
        model,
        finder,
        config("blocklist.redact=true", "query.style=written", "trigger.whitelist=false"),
        blocklist=Blocklist(["Nightjar"]),
    )
    engine.answer("How does NIGHT\u200bJAR roll out payments?")
    asides = [prompt for prompt in model.prompts if "search query" in prompt]
    assert asides
    seen = "\n".join([*finder.queries, *asides]).casefold().replace("\u200b", "")
    assert ("nightjar" in seen) == (not remote)


def test_trig_010_every_step_uses_the_model_that_was_given() -> None:
    model = PlannedModel("It is ?blue paint.")
    engine = FlareEngine(
        model,
        FixedRetriever({"payments": RUNBOOK, "paint": ROTA}),
        config("query.style=written", "decode.max_new_tokens=7", "query.max_written_tokens=3"),
    )
    turn = engine.answer(QUESTION)
    assert turn.model == "planned"
    assert any("search query" in prompt for prompt in model.prompts)
    assert len(turn.tokens or ()) <= 7


def test_the_self_check_asks_after_the_draft_and_leaves_the_answer_alone() -> None:
    def plan(text: str) -> str:
        if "Check your last sentence" in text.rpartition("<s>user")[2]:
            return '{"needs_fact": false, "missing": ""}'
        return "Use helm. Done now."

    model = PlannedModel(plan)
    turn = FlareEngine(model, retriever(), config("trigger.when=self_check")).answer(QUESTION)
    assert turn.answer == "Use helm. Done now."
    assert turn.iterations == 2
    assert turn.usage.decoded_tokens > len(turn.tokens or ()) + 1
    checks = [prompt for prompt in model.prompts if "Check your last sentence" in prompt]
    assert len(checks) >= 2
    assert "Use helm.</s>\n<s>user\nCheck your last sentence" in checks[0]


def test_a_turn_is_recorded_with_its_settings() -> None:
    turn = looked_up().answer(QUESTION)
    assert turn.config["trigger"]["when"] == "min_logprob"
    (lookup,) = turn.lookups
    assert (lookup.sentence, lookup.reason) == (1, "min_logprob")
    assert lookup.found == ("runbook", "release")
    assert lookup.added == ("release",)
    assert turn.timings_ms.total >= turn.timings_ms.decode + turn.timings_ms.resume > 0
    assert turn.timings_ms.first_token is not None
    assert isinstance(turn, TurnLog)
    assert json.loads(turn.to_json())["outcome"] == "answered"


def test_a_list_that_repeats_itself_ends() -> None:
    plan = "1. Use helm.\n2. Use helm.\n3. Use helm."
    assert FlareEngine(PlannedModel(plan), retriever()).answer(QUESTION).answer == "1. Use helm."
    numbers = "1. 1.\n2. 2.\n3. 3."
    assert FlareEngine(PlannedModel(numbers), retriever()).answer(QUESTION).answer == "1. 1."


def test_an_answer_does_not_go_on_to_the_next_prompt() -> None:
    plan = "Use helm.\n\nQuestion: How do I wait?"
    turn = FlareEngine(PlannedModel(plan), retriever()).answer(QUESTION)
    assert turn.answer == "Use helm."
    assert turn.usage.discarded_tokens == 5
    going_on = FlareEngine(PlannedModel(plan), retriever(), config("decode.stop=[]"))
    assert going_on.answer(QUESTION).answer == plan


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"skip_questions must be regular expressions, was: '\(a'"
    ):
        FlareEngine(PlannedModel("x"), retriever(), config('lookup.skip_questions=["(a"]'))
