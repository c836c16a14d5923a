"""The generator as the runtime sees it: a protocol, and one door per engine behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Role = Literal["system", "user", "assistant", "tool"]
Signal = Literal["logprob", "entropy", "hidden"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Forward:
    """What one forward pass gives.

    ``logits``: raw, for the tokens after the last N inputs. *Shape:* ``[N, V]``
    ``hidden``: residual streams of the wanted layers at each input's own position, numbered as in
    ``hidden_states`` (0 = embeddings); None when no layer was asked for. *Shape:* ``[S, L, H]``
    """

    logits: NDArray[np.float32]
    hidden: NDArray[np.float32] | None


class KVCache(Protocol):
    """Keys and values of the tokens run so far."""

    @property
    def length(self) -> int:
        """How many tokens it holds."""
        ...

    def crop(self, length: int) -> None:
        """Keep the first ``length`` tokens; a length beyond what is held keeps all."""
        ...


class LanguageModel(Protocol):
    """An engine that runs token ids against a cache. Any object with these members will do."""

    @property
    def name(self) -> str:
        """What the turn log calls this model."""
        ...

    @property
    def engine(self) -> str:
        """What runs it and in which numbers, such as ``onnx int8``: states differ between them."""
        ...

    @property
    def layers(self) -> frozenset[int]:
        """Residual streams that ``forward`` can give, numbered as in ``hidden_states``."""
        ...

    @property
    def context_window(self) -> int:
        """Most tokens one sequence may have."""
        ...

    @property
    def stop_ids(self) -> frozenset[int]:
        """Ids that end an answer."""
        ...

    @property
    def control_tokens(self) -> tuple[str, ...]:
        """Texts that the tokenizer reads as control tokens; evidence must not contain them."""
        ...

    @property
    def signals(self) -> frozenset[Signal]:
        """What a step can be asked about; a trigger that needs more is refused."""
        ...

    @property
    def is_remote(self) -> bool:
        """True when prompts leave this machine."""
        ...

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of ``text``; control tokens are recognised, none is added."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """What the token adds to the text; nothing for a control token."""
        ...

    def render(self, messages: Sequence[Message]) -> str:
        """Apply the model's chat template, up to where the assistant's answer begins."""
        ...

    def new_cache(self) -> KVCache:
        """Return an empty cache for one sequence."""
        ...

    def forward(
        self,
        token_ids: Sequence[int],
        cache: KVCache,
        layers: tuple[int, ...] = (),
        num_logits: int = 1,
    ) -> Forward:
        """Run ``token_ids`` (at least one) after what ``cache`` holds, which grows by them.

        Logits come for the last ``num_logits`` of them: one to go on from, all to verify a draft.
        """
        ...
