"""The ONNX engine: a graph of ``flare models build``, run by plain onnxruntime."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from flare_runtime.errors import ModelError, first_line
from flare_runtime.language_model import Forward, KVCache, Message, Signal
from flare_runtime.language_model.checks import check_request
from flare_runtime.language_model.onnx_cache import OnnxCache
from flare_runtime.language_model.onnx_pass import GraphShape, Pass, read_shape
from flare_runtime.language_model.tokenizer import ChatTokenizer, context_window
from flare_runtime.model_store import read_graph_manifest, read_json

MAX_PASS = 256
"""Tokens of one pass; longer input runs in several, or scores of all pairs would need memory."""


class OnnxModel:
    """A causal language model as an ONNX graph. Build it with ``load``."""

    is_remote = False
    signals: frozenset[Signal] = frozenset({"logprob", "entropy", "hidden"})

    def __init__(
        self,
        name: str,
        session: onnxruntime.InferenceSession,
        shape: GraphShape,
        tokenizer: ChatTokenizer,
        context_window: int,
    ) -> None:
        self.name = name
        self.engine = "onnx"
        self.layers = shape.layers
        self.context_window = context_window
        self.stop_ids = tokenizer.stop_ids
        self.control_tokens = tokenizer.control_tokens
        self._session = session
        self._shape = shape
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, folder: Path, name: str, threads: int = 2) -> "OnnxModel":
        """Open a folder that ``flare models build`` made.

        Raises:
            ModelError: the folder is incomplete, or its graph is not one of ours.
        """
        manifest = read_graph_manifest(folder)
        if manifest is None:
            raise ModelError(
                f"no graph in {folder}: it must be made by `flare models build`; run that, or name "
                "another folder"
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # errors are raised; it would print them too
        try:
            session = onnxruntime.InferenceSession(
                folder / "model.onnx", options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # one class a cause, without a base of their own
            raise ModelError(
                f"cannot open the graph in {folder}: {first_line(error)}; "
                f"remove it and run `{manifest.command}`"
            ) from error
        model = cls(
            name,
            session,
            read_shape(session, folder),
            ChatTokenizer(folder, name),
            context_window(read_json(folder / "config.json"), name),
        )
        model.engine = f"onnx {manifest.precision}"
        return model

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of ``text``; control tokens are recognised, none is added."""
        return self._tokenizer.encode(text)

    def token_bytes(self, token_id: int) -> bytes:
        """What the token adds to the text; nothing for ids beyond the vocabulary."""
        return self._tokenizer.token_bytes(token_id)

    def render(self, messages: Sequence[Message]) -> str:
        """Apply the chat template, up to where the assistant's answer begins.

        Raises:
            ModelError: the template does not take these roles in this order.
        """
        return self._tokenizer.render(messages)

    def new_cache(self) -> OnnxCache:
        """Return an empty cache for one sequence."""
        return OnnxCache(self._shape.cache, self.context_window)

    def forward(
        self,
        token_ids: Sequence[int],
        cache: KVCache,
        layers: tuple[int, ...] = (),
        num_logits: int = 1,
    ) -> Forward:
        """Run ``token_ids`` after what ``cache`` holds; logits of the last ``num_logits`` of them.

        Raises:
            ModelError: the cache is another engine's or full, or the graph lacks a layer.
        """
        if not isinstance(cache, OnnxCache):
            raise ModelError(f"the cache must come from new_cache(), was: {type(cache).__name__}")
        check_request(self, token_ids, layers, num_logits)
        cache.reserve(cache.length + len(token_ids))
        before = cache.length
        first_logit = len(token_ids) - num_logits
        parts = []
        try:
            for start in range(0, len(token_ids), MAX_PASS):
                part = token_ids[start : start + MAX_PASS]
                wanted = min(max(start + len(part) - first_logit, 0), len(part))
                parts.append(self._bound_pass(cache, len(part), wanted, layers).run(part, cache))
        except BaseException:
            cache.crop(before)  # an interrupted pass has run nothing
            raise
        return _join(parts)

    def _bound_pass(
        self, cache: OnnxCache, num_tokens: int, num_logits: int, layers: tuple[int, ...]
    ) -> Pass:
        """A decode step keeps its bindings, which else cost as much as the sampling."""
        if num_tokens > 1:
            return Pass(self._session, self._shape, cache, num_tokens, num_logits, layers)
        bound = cache.bound.get(layers)
        if not isinstance(bound, Pass):
            bound = Pass(self._session, self._shape, cache, 1, 1, layers)
            cache.bound[layers] = bound
        return bound


def _join(parts: list[Forward]) -> Forward:
    if len(parts) == 1:
        return parts[0]
    hidden: list[NDArray[np.float32]] = [p.hidden for p in parts if p.hidden is not None]
    return Forward(
        np.concatenate([part.logits for part in parts]),
        np.concatenate(hidden) if hidden else None,
    )
