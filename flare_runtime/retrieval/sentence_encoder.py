"""A sentence encoder on any engine: tokenizes, batches texts of similar length, pools states."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from flare_runtime.errors import ModelError, first_line
from flare_runtime.retrieval.embedder_settings import EmbedderSettings, Pooling
from flare_runtime.token_text import encodable

MAX_BATCH_TOKENS = 1024
"""Padding included. States of larger batches leave the processor's cache: 32 texts of 200 tokens
run at four fifths of the speed and need three times the memory."""
SMALLEST_NORM = 1e-12


class EncoderEngine(Protocol):
    """What runs the network: nothing but the forward pass of a padded batch."""

    @property
    def dimension(self) -> int:
        """Length of a state."""
        ...

    def states(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the states after the last layer. *Shape:* ``[B, S]`` twice to ``[B, S, D]``.

        ``mask`` is 1 where a token stands and 0 where a row is padded, on its right.
        """
        ...


class SentenceEncoder:
    """Vectors of texts and of their tokens, in fp32 on the processor.

    Texts run in batches of similar length; results come back in the order of the input. A text
    longer than ``max_tokens`` is truncated: its vector speaks for its beginning only.

    Raises:
        ModelError: the special tokens alone fill the length that is allowed.

    """

    def __init__(
        self, name: str, engine: EncoderEngine, tokenizer: Tokenizer, settings: EmbedderSettings
    ) -> None:
        self.name = name
        self.dimension = engine.dimension
        self.max_tokens = settings.max_length - tokenizer.num_special_tokens_to_add(False)
        if self.max_tokens < 1:
            raise ModelError(
                f"the embedder {name} must take at least 1 token a text beside its special ones, "
                f"its limit is {settings.max_length}; raise max_seq_length in its "
                "sentence_bert_config.json"
            )
        self._engine = engine
        self._tokenizer = tokenizer
        self._settings = settings

    def count_tokens(self, text: str) -> int:
        """How many tokens ``text`` has, special tokens not counted, nothing cut off."""
        return len(self._tokenizer.encode(encodable(text), add_special_tokens=False))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text. *Shape:* ``[N, D]``."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for batch in self._run(texts):
            vectors[list(batch.rows)] = _unit(_pool(batch, self._settings.pooling))
        return vectors

    def token_vectors(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], ...]:
        """Return unit vectors of each text's own tokens. *Shape:* ``[T_i, D]`` each."""
        found: dict[int, NDArray[np.float32]] = {}
        for batch in self._run(texts):
            for row, states, own in zip(batch.rows, batch.states, batch.own, strict=True):
                found[row] = _unit(states[own])
        return tuple(found[row] for row in range(len(texts)))

    def _run(self, texts: Sequence[str]) -> Iterator["_Batch"]:
        encoded = [self._encode(text) for text in texts]
        for rows in _batches([len(encoding) for encoding in encoded]):
            # A tokenizer without special tokens makes none of "", yet a network needs a column.
            width = max(1, len(encoded[rows[-1]]))
            ids = np.full((len(rows), width), self._settings.pad_id, dtype=np.int64)
            mask = np.zeros_like(ids)
            own = np.zeros(ids.shape, dtype=np.bool_)
            for at, row in enumerate(rows):
                length = len(encoded[row])
                ids[at, :length] = encoded[row].ids
                mask[at, :length] = 1
                own[at, :length] = np.equal(encoded[row].special_tokens_mask, 0)
            yield _Batch(rows, self._engine.states(ids, mask), mask, own)

    def _encode(self, text: str) -> Encoding:
        """Cut before special tokens are added, hence on top of ``max_tokens``."""
        encoding = self._tokenizer.encode(encodable(text), add_special_tokens=False)
        encoding.truncate(self.max_tokens)
        return self._tokenizer.post_process(encoding)


@dataclass(frozen=True, slots=True)
class _Batch:
    """One forward pass: which texts, what came out, where tokens stand, and which are the text's.

    *Shapes:* ``states [B, S, D]``, ``mask`` and ``own`` ``[B, S]``.
    """

    rows: tuple[int, ...]
    states: NDArray[np.float32]
    mask: NDArray[np.int64]
    own: NDArray[np.bool_]


def load_tokenizer(path: Path, remedy: str) -> Tokenizer:
    """Open a ``tokenizer.json`` that neither cuts nor pads, whatever it was saved with.

    Raises:
        ModelError: the file is damaged; ``remedy`` says what to do about it.

    """
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ModelError(f"cannot read {path}: {first_line(error)}; {remedy}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _batches(lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Part texts, the shortest first, into batches; the last of each is its longest."""
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        if rows and (len(rows) + 1) * lengths[row] > MAX_BATCH_TOKENS:
            yield tuple(rows)
            rows = []
        rows.append(row)
    if rows:
        yield tuple(rows)


def _pool(batch: _Batch, pooling: Pooling) -> NDArray[np.float32]:
    """Return one vector a text, of any length. *Shape:* ``[B, D]``."""
    if pooling == "first":
        return batch.states[:, 0]
    weights = batch.mask.astype(np.float32)
    sums = (weights[:, None, :] @ batch.states)[:, 0]
    return np.asarray(sums / np.maximum(weights.sum(axis=1, keepdims=True), 1.0))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row to length 1; a row of zeros stays."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, SMALLEST_NORM))
