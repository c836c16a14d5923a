"""Drafts and assessments by hand."""

from collections.abc import Sequence

import numpy as np

from critic import CriticScore
from flare_runtime.assessment import Assessment
from flare_runtime.types import Draft, Token


def assess(
    pieces: Sequence[tuple[str, float]],
    *,
    entropies: Sequence[float] | None = None,
    blocked: Sequence[int] = (),
    exempt: Sequence[int] = (),
    critic: CriticScore | None = None,
    sentence_index: int = 0,
) -> Assessment:
    """An assessment of ``(text, logprob)`` tokens; ``blocked`` and ``exempt`` are token numbers."""
    entropies = entropies or [0.0] * len(pieces)
    tokens = tuple(
        Token(number, text, logprob, entropy)
        for number, ((text, logprob), entropy) in enumerate(zip(pieces, entropies, strict=True))
    )
    count = range(len(pieces))
    return Assessment(
        draft=Draft(tokens, "sentence"),
        blocked=tuple(index in blocked for index in count),
        exempt=tuple(index in exempt or index in blocked for index in count),
        blocked_spans=(),
        sentence_index=sentence_index,
        prefix=(1, 2),
        critic=critic,
    )


def critic_score(risks: Sequence[float], sentence: float) -> CriticScore:
    return CriticScore(np.array(risks, dtype=np.float32), sentence)
