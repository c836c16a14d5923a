"""Texts to vectors: the embedder protocol, and the encoder in a folder behind it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flare_runtime.errors import ModelError
from flare_runtime.retrieval.embedder_settings import read_embedder_settings
from flare_runtime.retrieval.model_folder import require_model_files
from flare_runtime.retrieval.sentence_encoder import EncoderEngine, SentenceEncoder, load_tokenizer

GRAPH = "model.onnx"
WEIGHTS = ("*.safetensors", "*.bin")


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


def open_embedder(name: str, threads: int = 2) -> Embedder:
    """Open an embedder as ``flare models list`` knows it, by its graph where one was built.

    Raises:
        ModelError: the model is not there, incomplete, or its graph is of other weights.
    """
    from flare_runtime.model_store import find_graph, resolve_model

    folder = resolve_model(name, "embedder")
    return load_embedder(find_graph(name, folder, "auto", "fp32") or folder, name, threads)


def load_embedder(folder: Path, name: str, threads: int = 2) -> Embedder:
    """Load a sentence encoder from ``folder``; nothing is fetched.

    A folder with ``model.onnx`` runs on onnxruntime, which spares the process torch and
    transformers; one with transformers weights runs on those. Vectors are the same to 1e-5.

    Args:
        folder: graph or weights, configuration and tokenizer.
        name: what an index will remember and an error's remedy names.
        threads: that one forward pass may use. Under transformers this is torch's own setting,
            hence the whole process's.

    Raises:
        ModelError: the folder is missing, incomplete or damaged, is no encoder's, or pools in a
            way that is not supported.

    """
    is_graph = (folder / GRAPH).is_file()
    remedy = f"run `flare models {'build' if is_graph else 'pull'} {name}`"
    require_model_files(folder, "embedder", remedy)
    settings = read_embedder_settings(folder, remedy)
    tokenizer = load_tokenizer(folder / "tokenizer.json", remedy)
    engine = _open_engine(folder, threads, remedy)
    return SentenceEncoder(name, engine, tokenizer, settings)


def _open_engine(folder: Path, threads: int, remedy: str) -> EncoderEngine:
    """Import one engine only: each brings libraries that the other does without."""
    if (folder / GRAPH).is_file():
        from flare_runtime.retrieval.embedder_onnx import OnnxEngine

        return OnnxEngine.load(folder / GRAPH, threads, remedy)
    if any(path for pattern in WEIGHTS for path in folder.glob(pattern)):
        from flare_runtime.retrieval.embedder_transformers import TransformersEngine

        return TransformersEngine.load(folder, threads, remedy)
    raise ModelError(
        f"cannot load the embedder in {folder}: it has neither {GRAPH} nor *.safetensors; {remedy}"
    )
