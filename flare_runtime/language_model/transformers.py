"""The transformers engine: any causal language model with full attention."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jinja2 import TemplateError
from numpy.typing import NDArray
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
)

from flare_runtime.config import Dtype
from flare_runtime.errors import ModelError
from flare_runtime.language_model import Forward, KVCache, Message, Signal
from flare_runtime.language_model.layer_taps import LayerTaps
from flare_runtime.language_model.vocabulary import vocabulary_bytes
from flare_runtime.quiet import silence_transformers

PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"
)
"""For base models, which bring no chat template."""


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

    def __init__(self, name: str, model: Any, tokenizer: Any) -> None:  # noqa: ANN401
        self.name = name
        self._model = model
        self._tokenizer = tokenizer
        specification = json.loads(tokenizer.backend_tokenizer.to_str())
        self._token_bytes = vocabulary_bytes(specification)
        self.control_tokens = tuple(
            entry["content"] for entry in specification["added_tokens"] if entry["special"]
        )
        config = model.config
        self.context_window = _context_window(config, name)
        self.stop_ids = _stop_ids(model, specification)
        self._taps = LayerTaps(model)

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
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = AutoModelForCausalLM.from_pretrained(
                folder, local_files_only=True, dtype=getattr(torch, dtype)
            )
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise ModelError(
                f"cannot load the model {name!r} from {folder}: {_first_line(error)}; "
                "pull it again or name another folder"
            ) from error
        if not hasattr(tokenizer, "backend_tokenizer"):
            raise ModelError(
                f"the model {name!r} needs a fast tokenizer (tokenizer.json), {folder} has none"
            )
        loaded = cls(name, model.eval(), tokenizer)
        loaded._refuse_without_cache()
        return loaded

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of ``text``; control tokens are recognised, none is added."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def token_bytes(self, token_id: int) -> bytes:
        """What the token adds to the text; nothing for ids beyond the vocabulary."""
        return self._token_bytes[token_id] if token_id < len(self._token_bytes) else b""

    def render(self, messages: Sequence[Message]) -> str:
        """Apply the chat template, up to where the assistant's answer begins.

        Raises:
            ModelError: the template does not take these roles in this order.
        """
        template = self._tokenizer.chat_template or PLAIN_TEMPLATE
        conversation = [{"role": m.role, "content": m.content} for m in messages]
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    conversation, chat_template=template, tokenize=False, add_generation_prompt=True
                )
            )
        except TemplateError as error:
            raise ModelError(
                f"the chat template of {self.name!r} does not take the roles "
                f"{[m.role for m in messages]}: {_first_line(error)}"
            ) from error

    def new_cache(self) -> TransformersCache:
        """Return an empty cache for one sequence."""
        return TransformersCache()

    def _refuse_without_cache(self) -> None:
        """A recurrent state is no cache of tokens: it does not grow and cannot be rolled back."""
        cache = self.new_cache()
        try:
            self.forward([0], cache)
        except (TypeError, AttributeError) as error:
            raise ModelError(f"cannot run {self.name!r}: {_first_line(error)}") from error
        if cache.length != 1:
            raise ModelError(
                f"the model {self.name!r} must keep one cache entry a token, kept {cache.length} "
                "for 1; its state cannot be cropped, choose another generator"
            )

    @torch.inference_mode()
    def forward(
        self, token_ids: Sequence[int], cache: KVCache, layers: tuple[int, ...] = ()
    ) -> Forward:
        """Run ``token_ids`` after what ``cache`` holds; logits for the last position only."""
        if not isinstance(cache, TransformersCache):
            raise ModelError(f"the cache must come from new_cache(), was: {type(cache).__name__}")
        with self._taps.tapped(layers) as states:
            output = self._model(
                input_ids=torch.tensor([list(token_ids)]),
                cache=cache.inner,
                use_cache=True,
                logits_to_keep=1,
            )
            hidden = [_as_numpy(states[layer][0]) for layer in layers]
        cache.inner = output.cache
        return Forward(
            logits=_as_numpy(output.logits[0, -1]),
            hidden=np.stack(hidden, axis=1) if hidden else None,
        )


def _as_numpy(tensor: torch.Tensor) -> NDArray[np.float32]:
    return np.asarray(tensor.to(dtype=torch.float32, device="cpu").numpy())


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _context_window(config: Any, name: str) -> int:  # noqa: ANN401
    for key in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
        if length := getattr(config, key, None):
            return int(length)
    raise ModelError(
        f"the model {name!r} does not say how long its context may be; "
        "set max_position_embeddings in its config.json"
    )


def _stop_ids(model: Any, specification: dict[str, Any]) -> frozenset[int]:  # noqa: ANN401
    """End-of-sequence ids, and every control token: none of them is answer text."""
    end = model.generation_config.eos_token_id
    ids = {entry["id"] for entry in specification["added_tokens"] if entry["special"]}
    return frozenset(ids | set(end if isinstance(end, list) else [] if end is None else [end]))


def _refuse_uncroppable(config: Any, name: str) -> None:  # noqa: ANN401
    """A window that has dropped entries, or a recurrent state, cannot be rolled back."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        raise ModelError(
            f"the model {name!r} must use full attention in every layer, its layers were: "
            f"{', '.join(sorted(kinds))}; their cache cannot be cropped, choose another generator"
        )
