"""What the runtime asks of a critic."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class CriticScore:
    """Risk that a draft needs retrieval, in [0, 1].

    ``token_risk``: one value a token, *Shape:* ``[T]``.
    ``sentence_risk``: pooled over the tokens that the mask keeps.
    """

    token_risk: NDArray[np.float32]
    sentence_risk: float


class Critic(Protocol):
    """A head on hidden states. Any object with these members will do."""

    @property
    def name(self) -> str:
        """What the turn log calls this critic."""
        ...

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers it reads, numbered as in ``hidden_states`` (0 = embeddings)."""
        ...

    @property
    def threshold(self) -> float:
        """Sentence risk above which a sentence needs retrieval."""
        ...

    def score(self, hidden: NDArray[np.float32], mask: NDArray[np.bool_]) -> CriticScore:
        """Score one draft.

        Args:
            hidden: residual streams at each token's own position. *Shape:* ``[T, L, H]``
            mask: False where a token must not count (blocklisted). *Shape:* ``[T]``
        """
        ...
