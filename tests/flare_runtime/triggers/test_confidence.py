import math

import pytest
from assessments import assess
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.triggers import Trigger
from flare_runtime.triggers.confidence import EntropyTrigger, MeanLogprobTrigger, MinLogprobTrigger
from flare_runtime.types import Decision, Span

LOGPROBS = st.lists(st.floats(-9, 0), min_size=1, max_size=12)
TRIGGERS = [MinLogprobTrigger(-2.0), MeanLogprobTrigger(-2.0), EntropyTrigger(2.0)]


def pieces(logprobs: list[float]) -> list[tuple[str, float]]:
    return [(f" w{index}", logprob) for index, logprob in enumerate(logprobs)]


@given(LOGPROBS, st.floats(-9, 0))
def test_min_fires_on_any_token_below(logprobs: list[float], threshold: float) -> None:
    decision = MinLogprobTrigger(threshold).decide(assess(pieces(logprobs)))
    assert decision.fired == any(logprob < threshold for logprob in logprobs)
    assert decision.score == min(logprobs)
    assert len(decision.spans) == sum(logprob < threshold for logprob in logprobs)


@given(LOGPROBS, st.floats(-9, 0))
def test_mean_fires_on_the_mean(logprobs: list[float], threshold: float) -> None:
    decision = MeanLogprobTrigger(threshold).decide(assess(pieces(logprobs)))
    assert decision.score == pytest.approx(sum(logprobs) / len(logprobs))
    assert decision.fired == (decision.score < threshold)


@given(st.lists(st.floats(0, 9), min_size=1, max_size=12), st.floats(0, 9))
def test_entropy_fires_on_a_spike(entropies: list[float], threshold: float) -> None:
    texts = pieces([0.0] * len(entropies))
    decision = EntropyTrigger(threshold).decide(assess(texts, entropies=entropies))
    assert decision.score == max(entropies)
    assert decision.fired == (max(entropies) > threshold)


@pytest.mark.parametrize("trigger", TRIGGERS, ids=lambda t: t.name)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_fires(trigger: Trigger, value: float) -> None:
    assessment = assess([("a", -0.1), (" b", value)], entropies=[0.0, value])
    assert trigger.decide(assessment).fired


@pytest.mark.parametrize("logprob", [-math.inf, math.nan])
def test_trig_006_007_no_confidence_fires(logprob: float) -> None:
    decision = MinLogprobTrigger(math.log(0.4)).decide(assess([("x", logprob)]))
    assert decision.fired
    assert decision.spans == (Span(0, 1),)


@pytest.mark.parametrize("trigger", TRIGGERS, ids=lambda t: t.name)
def test_masked_tokens_count_for_nothing(trigger: Trigger) -> None:
    texts = [("Nightjar", -9.0), (" is", -0.1), (" 2.14", -9.0)]
    assessment = assess(texts, entropies=[9.0, 0.1, 9.0], blocked=[0], exempt=[2])
    assert not trigger.decide(assessment).fired


@pytest.mark.parametrize("trigger", TRIGGERS, ids=lambda t: t.name)
def test_a_sentence_is_silenced_only_for_its_masked_tokens(trigger: Trigger) -> None:
    texts = [("Nightjar", -9.0), (" guess", -9.0)]
    decision = trigger.decide(assess(texts, entropies=[9.0, 9.0], blocked=[0]))
    assert decision.fired
    assert decision.spans == (Span(8, 14),)


@pytest.mark.parametrize("trigger", TRIGGERS, ids=lambda t: t.name)
def test_all_masked_is_said_so(trigger: Trigger) -> None:
    decision = trigger.decide(assess([("Nightjar", -9.0)], entropies=[9.0], blocked=[0]))
    assert (decision.fired, decision.reason, decision.score) == (False, "all_masked", None)


def test_the_decision_names_signal_score_and_threshold() -> None:
    assert MinLogprobTrigger(-2.0).decide(assess([("a", -0.5), (" b", -3.0)])) == Decision(
        True, "min_logprob", -3.0, -2.0, (Span(1, 3),)
    )
    assert MeanLogprobTrigger(-2.0).decide(assess([("a", -0.5), (" b", -3.0)])) == Decision(
        False, "confident", -1.75, -2.0, ()
    )
