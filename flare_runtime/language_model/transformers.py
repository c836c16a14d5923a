"""The transformers engine: any causal language model with full attention."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

from flare_runtime.config import Dtype
from flare_runtime.errors import ModelError, first_line
from flare_runtime.language_model import Forward, KVCache, Message, Signal
from flare_runtime.language_model.checks import check_request
from flare_runtime.language_model.layer_taps import LayerTaps
from flare_runtime.language_model.tokenizer import ChatTokenizer, context_window
from flare_runtime.quiet import silence_transformers


class TransformersCache:
    """A ``DynamicCache`` whose crop means one thing: keep that many tokens."""

    def __init__(self) -> None:
        self.inner = DynamicCache()

    @property
    def length(self) -> int:
        """How many tokens it holds."""
        return int(self.inner.get_seq_length())

    def crop(self, length: int) -> None:
        """Keep the first ``length`` tokens."""
        surplus = self.length - max(length, 0)
        if surplus >= self.length:
            self.inner = DynamicCache()
        elif surplus > 0:
            self.inner.crop(-surplus)


class TransformersModel:
    """A causal language model run by transformers. Build it with ``load``."""

    is_remote = False
    signals: frozenset[Signal] = frozenset({"logprob", "entropy", "hidden"})

    def __init__(self, name: str, model: Any, tokenizer: ChatTokenizer, window: int) -> None:  # noqa: ANN401
        self.name = name
        self.engine = f"transformers {str(model.dtype).removeprefix('torch.')}"
        self.context_window = window
        self.stop_ids = tokenizer.stop_ids
        self.control_tokens = tokenizer.control_tokens
        self._model = model
        self._tokenizer = tokenizer
        self._taps = LayerTaps(model)
        self.layers = self._taps.layers

    @classmethod
    def load(
        cls, folder: Path, name: str, dtype: Dtype = "float32", threads: int = 2
    ) -> "TransformersModel":
        """Load a model folder, from local files only.

        Raises:
            ModelError: the folder is incomplete, or its cache cannot be cropped.
        """
        torch.set_num_threads(threads)
        silence_transformers()
        try:
            config = AutoConfig.from_pretrained(folder, local_files_only=True)
            _refuse_uncroppable(config, name)
            model = AutoModelForCausalLM.from_pretrained(
                folder, local_files_only=True, dtype=getattr(torch, dtype)
            )
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise ModelError(
                f"cannot load the model {name!r} from {folder}: {first_line(error)}; "
                "pull it again or name another folder"
            ) from error
        tokenizer = ChatTokenizer(folder, name)
        loaded = cls(name, model.eval(), tokenizer, context_window(config.to_dict(), name))
        loaded._refuse_without_cache()
        return loaded

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

    def new_cache(self) -> TransformersCache:
        """Return an empty cache for one sequence."""
        return TransformersCache()

    def _refuse_without_cache(self) -> None:
        """A recurrent state is no cache of tokens: it does not grow and cannot be rolled back."""
        cache = self.new_cache()
        try:
            self.forward([0], cache)
        except (TypeError, AttributeError) as error:
            raise ModelError(f"cannot run {self.name!r}: {first_line(error)}") from error
        if cache.length != 1:
            raise ModelError(
                f"the model {self.name!r} must keep one cache entry a token, kept {cache.length} "
                "for 1; its state cannot be cropped, choose another generator"
            )

    @torch.inference_mode()
    def forward(
        self,
        token_ids: Sequence[int],
        cache: KVCache,
        layers: tuple[int, ...] = (),
        num_logits: int = 1,
    ) -> Forward:
        """Run ``token_ids`` after what ``cache`` holds; logits of the last ``num_logits`` of them.

        Raises:
            ModelError: the cache is another engine's, or the model has no such layer.
        """
        if not isinstance(cache, TransformersCache):
            raise ModelError(f"the cache must come from new_cache(), was: {type(cache).__name__}")
        check_request(self, token_ids, layers, num_logits)
        with self._taps.tapped(layers) as states:
            output = self._model(
                input_ids=torch.tensor([list(token_ids)]),
                cache=cache.inner,
                use_cache=True,
                logits_to_keep=num_logits,
            )
            hidden = [_as_numpy(states[layer][0]) for layer in layers]
        cache.inner = output.cache
        return Forward(
            logits=_as_numpy(output.logits[0]),
            hidden=np.stack(hidden, axis=1) if hidden else None,
        )


def _as_numpy(tensor: torch.Tensor) -> NDArray[np.float32]:
    return np.asarray(tensor.to(dtype=torch.float32, device="cpu").numpy())


def _refuse_uncroppable(config: Any, name: str) -> None:  # noqa: ANN401
    """A window that has dropped entries, or a recurrent state, cannot be rolled back."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        raise ModelError(
            f"the model {name!r} must use full attention in every layer, its layers were: "
            f"{', '.join(sorted(kinds))}; their cache cannot be cropped, choose another generator"
        )
