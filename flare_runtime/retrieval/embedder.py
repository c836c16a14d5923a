"""Texts to vectors: the embedder protocol and sentence encoders loaded from a folder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from flare_runtime.errors import ModelError
from flare_runtime.quiet import silence_transformers
from flare_runtime.retrieval.model_folder import read_settings, require_model_files
from flare_runtime.token_text import encodable

if TYPE_CHECKING:
    import torch
    from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

Pooling = Literal["mean", "first"]

BATCH_SIZE = 32


class Embedder(Protocol):
    """What indexing, search and reranking ask of an embedding model."""

    @property
    def name(self) -> str:
        """The name an index remembers, so that queries meet the model that made its vectors."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Most tokens of a text that reach its vector, special tokens not counted."""
        ...

    def count_tokens(self, text: str) -> int:
        """How many tokens ``text`` has, special tokens not counted, nothing cut off."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text. *Shape:* ``[N, D]``. Tokens over ``max_tokens`` are left out."""
        ...

    def token_vectors(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], ...]:
        """Return unit vectors of each text's tokens but the special ones. *Shape:* ``[T_i, D]``.

        ``T_i`` is 0 for a text without tokens; tokens over ``max_tokens`` are left out.
        """
        ...


class TransformersEmbedder:
    """A sentence encoder of the Hugging Face kind, in fp32 on the processor.

    Texts run in batches of similar length; results come back in the order of the input. A text
    longer than ``max_tokens`` is truncated: its vector speaks for its beginning only.
    """

    def __init__(
        self,
        name: str,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        max_tokens: int,
        pooling: Pooling,
    ) -> None:
        self.name = name
        self.max_tokens = max_tokens
        self.dimension = int(model.config.hidden_size)
        self._model = model
        self._tokenizer = tokenizer
        self._pooling = pooling

    def count_tokens(self, text: str) -> int:
        """How many tokens ``text`` has, special tokens not counted, nothing cut off."""
        encoded = self._tokenizer(encodable(text), add_special_tokens=False, verbose=False)
        return len(encoded["input_ids"])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text. *Shape:* ``[N, D]``."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for batch in self._run(texts):
            pooled = _pool(batch.states, batch.mask, self._pooling)
            vectors[list(batch.rows)] = _unit(pooled).numpy()
        return vectors

    def token_vectors(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], ...]:
        """Return unit vectors of each text's own tokens. *Shape:* ``[T_i, D]`` each."""
        found: dict[int, NDArray[np.float32]] = {}
        for batch in self._run(texts):
            units = _unit(batch.states)
            for row, unit, keep in zip(batch.rows, units, batch.mask & ~batch.special, strict=True):
                found[row] = unit[keep].numpy()
        return tuple(found[row] for row in range(len(texts)))

    def _run(self, texts: Sequence[str]) -> Iterator["_Batch"]:
        import torch

        encoded = [self._encode(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda row: len(encoded[row]["input_ids"]))
        for start in range(0, len(order), BATCH_SIZE):
            rows = tuple(order[start : start + BATCH_SIZE])
            padded = self._tokenizer.pad([encoded[row] for row in rows], return_tensors="pt")
            special = padded.pop("special_tokens_mask").bool()
            with torch.inference_mode():
                states = self._model(**padded).last_hidden_state
            yield _Batch(rows, states, padded["attention_mask"].bool(), special)

    def _encode(self, text: str) -> "BatchEncoding":
        # Special tokens are added after the cut, hence on top of max_tokens.
        special = self._tokenizer.num_special_tokens_to_add(pair=False)
        encoded: BatchEncoding = self._tokenizer(
            encodable(text),
            truncation=True,
            max_length=self.max_tokens + special,
            return_special_tokens_mask=True,
            verbose=False,
        )
        return encoded


@dataclass(frozen=True, slots=True)
class _Batch:
    """One forward pass: which texts, what came out, which positions are real, which special."""

    rows: tuple[int, ...]
    states: "torch.Tensor"
    mask: "torch.Tensor"
    special: "torch.Tensor"


def load_embedder(folder: Path, name: str) -> TransformersEmbedder:
    """Load a sentence encoder from ``folder``; nothing is fetched.

    Token limit and pooling come from its sentence-transformers files, if any; else mean pooling.

    Raises:
        ModelError: the folder is missing, incomplete, or pools in a way that is not supported.

    """
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModel, AutoTokenizer

    require_model_files(folder, "embedder")
    pooling = _read_pooling(folder)
    silence_transformers()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ModelError(f"cannot load the embedder in {folder}: {error}") from error
    limit = _read_token_limit(folder, tokenizer, model)
    max_tokens = limit - tokenizer.num_special_tokens_to_add(pair=False)
    return TransformersEmbedder(name, model.eval(), tokenizer, max_tokens, pooling)


def _read_pooling(folder: Path) -> Pooling:
    settings = read_settings(folder / "1_Pooling" / "config.json")
    modes = {key for key, on in settings.items() if key.startswith("pooling_mode_") and on is True}
    if modes <= {"pooling_mode_mean_tokens"}:
        return "mean"
    if modes == {"pooling_mode_cls_token"}:
        return "first"
    raise ModelError(f"embedder must pool by mean or first token, was: {', '.join(sorted(modes))}")


def _read_token_limit(
    folder: Path, tokenizer: "PreTrainedTokenizerBase", model: "PreTrainedModel"
) -> int:
    trained = read_settings(folder / "sentence_bert_config.json").get("max_seq_length")
    positions = getattr(model.config, "max_position_embeddings", None)
    limits = (trained, positions, tokenizer.model_max_length)
    return min(int(limit) for limit in limits if limit)


def _pool(states: "torch.Tensor", mask: "torch.Tensor", pooling: Pooling) -> "torch.Tensor":
    if pooling == "first":
        return states[:, 0]
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)


def _unit(vectors: "torch.Tensor") -> "torch.Tensor":
    import torch

    return torch.nn.functional.normalize(vectors, dim=-1)
