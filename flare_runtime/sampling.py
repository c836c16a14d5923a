"""From raw logits to a token id and its scores. Pure, but for the sampler's random state."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_TEMPERATURE = 1e-3
IMPOSSIBLE = -1e4
"""Below any logit that counts; exp of it is 0, and so is its share of the entropy."""
NUCLEUS = 1024
"""Tokens among which the nucleus is sought before the whole vocabulary is sorted."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen token with its scores from raw logits (temperature 1, no processor).

    ``logprob`` is natural, ``entropy`` in nats over the whole vocabulary.
    """

    id: int
    logprob: float
    entropy: float


def score(logits: NDArray[np.float32], token_id: int) -> Choice:
    """Score a token by its logits, in one walk through the vocabulary.

    With z the logits less their maximum and Z = Σ exp z: log p = z_i − log Z and
    H = log Z − Σ z exp z / Z. A broken distribution (NaN, infinity) gives scores that are NaN.

    Args:
        logits: raw. *Shape:* ``[V]``
        token_id: the token to score.
    """
    with np.errstate(invalid="ignore"):  # infinity minus infinity: no number, and fires as such
        shifted = logits - np.max(logits)
        np.maximum(shifted, IMPOSSIBLE, out=shifted)
        weights = np.exp(shifted)
        total = float(np.sum(weights))
        log_total = float(np.log(total))
        entropy = log_total - float(np.dot(weights, shifted)) / total
    return Choice(token_id, float(shifted[token_id]) - log_total, max(entropy, 0.0))


class Sampler:
    """Chooses tokens greedily (temperature 0) or by nucleus sampling (Holtzman et al. 2020)."""

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
        candidates = logits if allowed is None else np.where(allowed, logits, -np.inf)
        likeliest = int(np.argmax(candidates))
        # A broken distribution cannot be drawn from; its scores are not finite and tell so.
        if self._temperature < MIN_TEMPERATURE or not np.isfinite(np.max(logits)):
            return score(logits, likeliest)
        return score(logits, self._sample(candidates))

    def _sample(self, logits: NDArray[np.floating]) -> int:
        scaled = logits.astype(np.float64) / self._temperature
        weights = np.exp(scaled - np.max(scaled))
        kept = _nucleus(weights / weights.sum(), self._top_p)
        return int(self._random.choice(kept, p=weights[kept] / weights[kept].sum()))


def _nucleus(probs: NDArray[np.float64], top_p: float) -> NDArray[np.intp]:
    """The smallest set of likeliest tokens that has a mass of ``top_p``; ties by id."""
    if top_p >= 1.0:
        return np.arange(len(probs))
    for size in (min(NUCLEUS, len(probs)), len(probs)):
        top = np.sort(np.argpartition(-probs, size - 1)[:size])
        order = top[np.argsort(-probs[top], kind="stable")]
        reached = np.cumsum(probs[order])
        if reached[-1] >= top_p:
            break
    return order[reached - probs[order] < top_p]
