import math

import pytest
from assessments import assess, critic_score

from flare_runtime.triggers.critic import CriticTrigger
from flare_runtime.types import Decision, Span

TEXTS = [("It", -0.1), (" runs", -0.1), (" 2.14", -0.1)]
TRIGGER = CriticTrigger(threshold=0.6, token_threshold=0.5)


def test_fires_above_the_sentence_threshold_and_names_the_tokens() -> None:
    decision = TRIGGER.decide(assess(TEXTS, critic=critic_score([0.1, 0.2, 0.9], 0.7)))
    assert decision == Decision(True, "critic", 0.7, 0.6, (Span(7, 12),))


@pytest.mark.parametrize("risk", [0.0, 0.6])
def test_is_silent_up_to_the_threshold(risk: float) -> None:
    decision = TRIGGER.decide(assess(TEXTS, critic=critic_score([0.1, 0.2, 0.9], risk)))
    assert decision == Decision(False, "confident", risk, 0.6, ())


@pytest.mark.parametrize("risk", [math.nan, math.inf, -math.inf])
def test_onnx_009_a_risk_that_is_not_finite_fires(risk: float) -> None:
    decision = TRIGGER.decide(assess(TEXTS, critic=critic_score([0.1, math.nan, 0.1], risk)))
    assert decision.fired
    assert decision.spans == (Span(2, 7),)


def test_abst_007_008_nothing_scored_is_not_clean() -> None:
    """A draft that the critic could not score is unknown, and unknown fires."""
    assert TRIGGER.decide(assess(TEXTS)) == Decision(True, "critic", None, 0.6)
    assert not TRIGGER.decide(assess([])).fired


def test_blocked_tokens_are_no_risk() -> None:
    score = critic_score([0.9, 0.9, 0.9], 0.9)
    assert TRIGGER.decide(assess(TEXTS, critic=score, blocked=[0, 1])).spans == (Span(7, 12),)
    everything = TRIGGER.decide(assess(TEXTS, critic=score, blocked=[0, 1, 2]))
    assert (everything.fired, everything.reason) == (False, "all_masked")
