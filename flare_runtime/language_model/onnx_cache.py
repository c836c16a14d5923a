"""The KV cache of the ONNX engine: buffers that the graph reads and writes in place."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from flare_runtime.errors import ModelError

FIRST_CAPACITY = 256


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Layers, key/value heads and head size of a model's cache."""

    num_layers: int
    num_heads: int
    head_size: int


class OnnxCache:
    """Keys and values of one sequence, with room for more.

    The graph gets the same buffer as past and as present, so a pass writes behind what is there
    and copies nothing. Cropping only moves the mark: entries behind it are never read, and the
    next pass writes over them. Room doubles when it runs out.
    """

    def __init__(self, shape: CacheShape, limit: int) -> None:
        """Make an empty cache that never holds more than ``limit`` tokens."""
        self._shape = shape
        self._limit = limit
        self._length = 0
        self._entries = self._allocate(min(FIRST_CAPACITY, limit))
        self.bound: dict[Any, Any] = {}
        """Whatever an engine has bound to these buffers; emptied when they move."""

    @property
    def length(self) -> int:
        """How many tokens it holds."""
        return self._length

    @property
    def capacity(self) -> int:
        """How many tokens it has room for."""
        return int(self._entries.shape[3])

    def crop(self, length: int) -> None:
        """Keep the first ``length`` tokens; a length beyond what is held keeps all."""
        self._length = min(self._length, max(length, 0))

    def advance(self, num_tokens: int) -> None:
        """Count the tokens that a pass has written."""
        self._length += num_tokens

    def reserve(self, length: int) -> None:
        """Make room for ``length`` tokens, at least double what was there.

        Raises:
            ModelError: the sequence would be longer than the model's context window.
        """
        if length <= self.capacity:
            return
        if length > self._limit:
            raise ModelError(
                f"a cache holds at most {self._limit} tokens (the context window), was: {length}"
            )
        grown = self._allocate(min(max(length, 2 * self.capacity), self._limit))
        grown[:, :, :, : self._length] = self._entries[:, :, :, : self._length]
        self._entries = grown
        self.bound.clear()

    def keep(self) -> NDArray[np.float32]:
        """Copy what it holds. *Shape:* ``[num_layers, 2, num_heads, T, head_size]``."""
        return self._entries[:, :, :, : self._length].copy()

    def fill(self, entries: NDArray[np.float32]) -> None:
        """Replace what it holds, by what ``keep`` gave or another engine computed.

        Args:
            entries: keys and values after rotary embedding.
                *Shape:* ``[num_layers, 2, num_heads, T, head_size]``

        Raises:
            ModelError: the shape is another model's.
        """
        expected = (self._shape.num_layers, 2, self._shape.num_heads, self._shape.head_size)
        if entries.ndim != 5 or (*entries.shape[:3], entries.shape[4]) != expected:
            raise ModelError(
                f"cache entries must be of shape {expected[:3]} x tokens x {expected[3]}, "
                f"was: {entries.shape}; they are another model's"
            )
        self._length = 0
        self.reserve(entries.shape[3])
        self._entries[:, :, :, : entries.shape[3]] = entries
        self._length = entries.shape[3]

    def buffers(self) -> dict[str, "onnxruntime.OrtValue"]:
        """The whole buffers by the graph's names, as ``0.key``, sharing this cache's memory."""
        return {
            f"{layer}.{part}": onnxruntime.OrtValue.ortvalue_from_numpy(
                self._entries[layer, index][np.newaxis]
            )
            for layer in range(self._shape.num_layers)
            for index, part in enumerate(("key", "value"))
        }

    def _allocate(self, capacity: int) -> NDArray[np.float32]:
        shape = self._shape
        # Zeros come from the system untouched: memory is taken when tokens are written.
        return np.zeros(
            (shape.num_layers, 2, shape.num_heads, capacity, shape.head_size), dtype=np.float32
        )
