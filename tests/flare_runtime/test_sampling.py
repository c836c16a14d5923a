import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.sampling import NUCLEUS, Sampler, score

LOGITS = st.lists(st.floats(-40, 40, width=32), min_size=2, max_size=50).map(
    lambda values: np.array(values, dtype=np.float32)
)


@given(LOGITS)
def test_scores_equal_those_of_torch(logits: np.ndarray) -> None:
    choice = Sampler().choose(logits)
    wanted = torch.distributions.Categorical(logits=torch.tensor(logits, dtype=torch.float64))
    assert choice.id == int(np.argmax(logits))
    assert choice.logprob == pytest.approx(
        wanted.log_prob(torch.tensor(choice.id)).item(), abs=1e-5
    )
    assert choice.entropy == pytest.approx(wanted.entropy().item(), abs=1e-4)


@given(LOGITS, st.floats(0.2, 3), st.integers(0, 5))
def test_scores_ignore_temperature(logits: np.ndarray, temperature: float, seed: int) -> None:
    choice = Sampler(temperature, top_p=0.9, seed=seed).choose(logits)
    assert choice == score(logits, choice.id)


def test_the_nucleus_is_the_smallest_set_that_reaches_top_p() -> None:
    probs = np.array([0.1, 0.5, 0.25, 0.15])
    sampler = Sampler(temperature=1.0, top_p=0.7, seed=1)
    seen = {sampler.choose(np.log(probs).astype(np.float32)).id for _ in range(200)}
    assert seen == {1, 2}


@pytest.mark.parametrize("spread", [1e-6, 3.0])
def test_a_nucleus_wider_than_its_first_search_is_found(spread: float) -> None:
    """Nearly equal tokens: more than the first search covers are needed to reach top_p."""
    logits = np.random.default_rng(0).normal(0, spread, 4 * NUCLEUS).astype(np.float32)
    probs = np.exp(logits.astype(np.float64)) / np.exp(logits.astype(np.float64)).sum()
    order = np.argsort(-probs, kind="stable")
    size = int(np.searchsorted(np.cumsum(probs[order]), 0.8)) + 1
    sampler = Sampler(temperature=1.0, top_p=0.8, seed=2)
    seen = {sampler.choose(logits).id for _ in range(300)}
    assert seen <= set(order[:size].tolist())
    assert (max(np.flatnonzero(np.isin(order, list(seen)))) > NUCLEUS) == (spread < 1)


def test_sampling_follows_the_distribution() -> None:
    probs = np.array([0.6, 0.3, 0.1])
    sampler = Sampler(temperature=1.0, seed=3)
    ids = [sampler.choose(np.log(probs).astype(np.float32)).id for _ in range(4000)]
    np.testing.assert_allclose(np.bincount(ids) / 4000, probs, atol=0.03)


def test_a_seed_repeats_itself() -> None:
    logits = np.linspace(0, 1, 50, dtype=np.float32)
    runs = [[Sampler(1.0, seed=5).choose(logits).id for _ in range(3)] for _ in range(2)]
    assert runs[0] == runs[1]


def test_only_allowed_tokens_are_chosen_but_all_are_scored() -> None:
    logits = np.array([3.0, 1.0, 2.0], dtype=np.float32)
    choice = Sampler().choose(logits, allowed=np.array([False, True, True]))
    assert choice.id == 2
    assert choice == score(logits, 2)


def test_trig_005_an_impossible_token_adds_no_entropy() -> None:
    logprobs = np.array([-0.693147, -0.693147, -math.inf], dtype=np.float32)
    assert score(logprobs, 0).entropy == pytest.approx(0.693147, abs=1e-4)
    choice = Sampler().choose(np.array([1.0, 1.0, -np.inf], dtype=np.float32))
    assert choice.entropy == pytest.approx(math.log(2))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_broken_logits_cannot_be_drawn_from_but_do_not_raise(value: float) -> None:
    choice = Sampler(temperature=0.7).choose(np.array([1.0, value, 2.0], dtype=np.float32))
    assert math.isnan(choice.logprob)


def test_a_temperature_next_to_nothing_is_greedy() -> None:
    assert Sampler(temperature=5e-324).choose(np.array([1.0, 3.0, 2.0], dtype=np.float32)).id == 1


def test_broken_logits_give_scores_that_are_not_finite() -> None:
    choice = Sampler().choose(np.array([1.0, np.nan, 2.0], dtype=np.float32))
    assert math.isnan(choice.logprob)
    assert math.isnan(choice.entropy)
