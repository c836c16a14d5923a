"""From raw logits to a token id and its scores. Pure, but for the sampler's random state."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_TEMPERATURE = 1e-3


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen token with its scores from raw logits (temperature 1, no processor)."""

    id: int
    logprob: float
    entropy: float


def entropy(logprobs: NDArray[np.floating]) -> float:
    """Entropy in nats of a distribution given by natural log-probabilities.

    An impossible token (minus infinity) adds nothing: 0 log 0 = 0.
    """
    finite = np.where(np.isneginf(logprobs), 0.0, logprobs)
    return float(-np.sum(np.exp(logprobs) * finite))


def log_softmax(logits: NDArray[np.floating]) -> NDArray[np.floating]:
    """Natural log-probabilities. *Shape:* ``[V]`` → ``[V]``; NaN logits stay NaN."""
    with np.errstate(invalid="ignore"):  # infinity minus infinity: no number, and fires as such
        shifted = logits - np.max(logits)
        return np.asarray(shifted - np.log(np.sum(np.exp(shifted))))


class Sampler:
    """Chooses tokens greedily (temperature 0) or by nucleus sampling."""

    def __init__(self, temperature: float = 0.0, top_p: float = 1.0, seed: int = 0) -> None:
        self._temperature = temperature
        self._top_p = top_p
        self._random = np.random.default_rng(seed)

    def choose(
        self, logits: NDArray[np.float32], allowed: NDArray[np.bool_] | None = None
    ) -> Choice:
        """Choose the next token.

        Args:
            logits: raw logits. *Shape:* ``[V]``
            allowed: False where a token must not be chosen; scores ignore it. *Shape:* ``[V]``
        """
        logprobs = log_softmax(logits)
        candidates = logits if allowed is None else np.where(allowed, logits, -np.inf)
        # A broken distribution cannot be drawn from; its scores are not finite and tell so.
        is_greedy = self._temperature < MIN_TEMPERATURE or not np.isfinite(logprobs.max())
        token_id = int(np.argmax(candidates)) if is_greedy else self._sample(candidates)
        return Choice(token_id, float(logprobs[token_id]), entropy(logprobs))

    def _sample(self, logits: NDArray[np.floating]) -> int:
        probs = np.exp(log_softmax(logits.astype(np.float64) / self._temperature))
        order = np.argsort(-probs, kind="stable")
        before = np.cumsum(probs[order]) - probs[order]
        nucleus = order[before < self._top_p]
        weights = probs[nucleus] / probs[nucleus].sum()
        return int(self._random.choice(nucleus, p=weights))
