"""The embedder's light engine: an encoder's graph on onnxruntime, without torch."""

from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from flare_runtime.errors import ModelError, first_line

REQUIRED_INPUTS = frozenset({"input_ids", "attention_mask"})
TOKEN_TYPES = "token_type_ids"
OUTPUT = "last_hidden_state"
AXES = 3
"""Batch, token, state."""


class OnnxEngine:
    """The forward pass of an exported encoder. Build it with ``load``."""

    def __init__(self, session: onnxruntime.InferenceSession, dimension: int, remedy: str) -> None:
        self.dimension = dimension
        self._session = session
        self._has_types = any(item.name == TOKEN_TYPES for item in session.get_inputs())
        self._remedy = remedy

    @classmethod
    def load(cls, path: Path, threads: int, remedy: str) -> "OnnxEngine":
        """Open a graph on the processor.

        Raises:
            ModelError: the file is damaged or no encoder's; ``remedy`` says what to do about it.

        """
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors only, and these are raised anyway
        try:
            session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # one class a cause, without a base of their own
            raise ModelError(f"cannot load {path}: {first_line(error)}; {remedy}") from error
        if fault := _find_fault(session):
            raise ModelError(f"{path} is no sentence encoder: {fault}; {remedy}")
        return cls(session, _dimension(session), remedy)

    def states(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the states after the last layer. *Shape:* ``[B, S]`` twice to ``[B, S, D]``.

        Raises:
            ModelError: the graph fails, as it does on ids beyond its vocabulary.

        """
        feed = {"input_ids": ids, "attention_mask": mask}
        if self._has_types:
            feed[TOKEN_TYPES] = np.zeros_like(ids)
        try:
            states: NDArray[np.float32] = self._session.run([OUTPUT], feed)[0]
        except Exception as error:  # as above
            raise ModelError(
                f"the embedder's graph failed: {first_line(error)}; {self._remedy}"
            ) from error
        return states


def _find_fault(session: onnxruntime.InferenceSession) -> str:
    """Say what keeps a graph from being a sentence encoder; "" if nothing does."""
    inputs = {item.name: item for item in session.get_inputs()}
    if inputs.keys() - {TOKEN_TYPES} != REQUIRED_INPUTS:
        return f"its inputs must be input_ids and attention_mask, were: {', '.join(inputs)}"
    for name, item in inputs.items():
        if item.type != "tensor(int64)" or any(isinstance(size, int) for size in item.shape):
            return f"{name} must be int64 of any size, was: {item.type} of {item.shape}"
    outputs = {item.name: item for item in session.get_outputs()}
    if OUTPUT not in outputs:
        return f"it must put out {OUTPUT}, its outputs were: {', '.join(outputs)}"
    kind, shape = outputs[OUTPUT].type, outputs[OUTPUT].shape
    if kind != "tensor(float)" or len(shape) != AXES or not isinstance(shape[-1], int):
        wanted = "float32 of three axes, the last of known size"
        return f"{OUTPUT} must be {wanted}, was: {kind} of {shape}"
    return ""


def _dimension(session: onnxruntime.InferenceSession) -> int:
    return next(int(item.shape[-1]) for item in session.get_outputs() if item.name == OUTPUT)
