"""One pass through the graph, its buffers bound so that nothing is copied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from flare_runtime.errors import ModelError, first_line
from flare_runtime.language_model import Forward
from flare_runtime.language_model.onnx_cache import CacheShape, OnnxCache

HIDDEN = "hidden_states."
PAST = "past_key_values."
PRESENT = "present."


@dataclass(frozen=True, slots=True)
class GraphShape:
    """What a graph's inputs and outputs say of the model.

    ``layers``: which residual streams come out, numbered as in ``hidden_states``.
    """

    cache: CacheShape
    vocabulary_size: int
    hidden_size: int
    layers: frozenset[int]


def read_shape(session: onnxruntime.InferenceSession, folder: Path) -> GraphShape:
    """Read the shape from the graph's own inputs and outputs.

    Raises:
        ModelError: they are not those of a graph of ``flare models build``.
    """
    inputs: Mapping[str, list[int]] = {i.name: i.shape for i in session.get_inputs()}
    outputs: Mapping[str, list[int]] = {o.name: o.shape for o in session.get_outputs()}
    past = sorted(name for name in inputs if name.startswith(PAST))
    present = sorted(name for name in outputs if name.startswith(PRESENT))
    controls = {"input_ids", "seqlens_k", "total_sequence_length", "logit_positions"}
    is_ours = (
        set(inputs) == controls | set(past)
        and [name.removeprefix(PAST) for name in past]
        == [name.removeprefix(PRESENT) for name in present]
        and bool(past)
        and "logits" in outputs
    )
    if not is_ours:
        raise ModelError(
            f"the graph in {folder} must be one of `flare models build`, its inputs were: "
            f"{', '.join(sorted(inputs)[:6])}…; build it again"
        )
    _, num_heads, _, head_size = inputs[past[0]]
    streams = {n: shape for n, shape in outputs.items() if n.startswith(HIDDEN)}
    return GraphShape(
        CacheShape(len(past) // 2, num_heads, head_size),
        outputs["logits"][-1],
        next((shape[-1] for shape in streams.values()), 0),
        frozenset(int(name.removeprefix(HIDDEN)) for name in streams),
    )


class Pass:
    """A pass of a fixed number of tokens over one cache, its buffers bound once."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        shape: GraphShape,
        cache: OnnxCache,
        num_tokens: int,
        num_logits: int,
        layers: tuple[int, ...],
    ) -> None:
        self._session = session
        self._token_ids = np.zeros((1, num_tokens), dtype=np.int64)
        self._last_index = np.zeros(1, dtype=np.int32)
        self._total = np.zeros((), dtype=np.int32)
        self._rows = np.arange(num_tokens - num_logits, num_tokens, dtype=np.int64)
        self._logits = np.empty((1, num_logits, shape.vocabulary_size), dtype=np.float32)
        self._hidden = np.empty((len(layers), num_tokens, shape.hidden_size), dtype=np.float32)
        self._binding = session.io_binding()
        for name, buffer in cache.buffers().items():
            self._binding.bind_ortvalue_input(PAST + name, buffer)
            self._binding.bind_ortvalue_output(PRESENT + name, buffer)
        self._bind_input("input_ids", self._token_ids)
        self._bind_input("seqlens_k", self._last_index)
        self._bind_input("total_sequence_length", self._total)
        self._bind_input("logit_positions", self._rows)
        self._bind_output("logits", self._logits)
        for row, layer in enumerate(layers):
            self._bind_output(f"{HIDDEN}{layer}", self._hidden[row][np.newaxis])

    def run(self, token_ids: Sequence[int], cache: OnnxCache) -> Forward:
        """Run the tokens after what the cache holds, which grows by them.

        Raises:
            ModelError: the runtime fails, as it does when memory is short.
        """
        total = cache.length + len(token_ids)
        self._token_ids[0] = token_ids
        self._last_index[0] = total - 1
        self._total[...] = total
        try:
            self._session.run_with_iobinding(self._binding)
        except Exception as error:  # one class a cause, without a base of their own
            raise ModelError(
                f"the graph cannot run {len(token_ids)} tokens after {cache.length}: "
                f"{first_line(error)}; use --set model.engine=transformers"
            ) from error
        cache.advance(len(token_ids))
        # The buffers serve the next step too, so what is given away is a copy.
        hidden = self._hidden.transpose(1, 0, 2).copy() if len(self._hidden) else None
        return Forward(self._logits[0].copy(), hidden)

    def _bind_input(self, name: str, array: NDArray[np.generic]) -> None:
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        self._binding.bind_ortvalue_input(name, value)

    def _bind_output(self, name: str, array: NDArray[np.float32]) -> None:
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        self._binding.bind_ortvalue_output(name, value)
