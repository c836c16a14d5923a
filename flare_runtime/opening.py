"""Opens the parts of an engine from their names and settings."""

from pathlib import Path
from typing import TYPE_CHECKING

from flare_runtime.config import FlareConfig, ModelConfig
from flare_runtime.language_model import LanguageModel
from flare_runtime.model_store import resolve_model

if TYPE_CHECKING:
    from flare_runtime.retrieval.embedder import Embedder
    from flare_runtime.retrieval.hybrid import HybridRetriever


def load_model(name: str, config: ModelConfig | None = None) -> LanguageModel:
    """Open the generator by a name of ``flare models list``, a folder, or a pulled hub name.

    Raises:
        ModelError: the model is not there, incomplete, or cannot be served.
    """
    from flare_runtime.language_model.transformers import TransformersModel

    settings = config or ModelConfig()
    return TransformersModel.load(
        resolve_model(name, "generator"), name, settings.dtype, settings.threads
    )


def open_embedder(name: str, threads: int) -> "Embedder":
    """Open the embedder by name or folder.

    Raises:
        ModelError: the model is not there or incomplete.
    """
    import torch

    from flare_runtime.retrieval.embedder import load_embedder

    torch.set_num_threads(threads)
    return load_embedder(resolve_model(name, "embedder"), name)


def open_retriever(index: Path, config: FlareConfig) -> "HybridRetriever":
    """Open an index with the embedder that made it.

    Raises:
        CorpusIndexError: the index is missing or damaged.
        ModelError: its embedder or the configured reranker is not there.
    """
    from flare_runtime.retrieval.hybrid import HybridRetriever

    return HybridRetriever.load(
        index,
        config.retrieval,
        open_embedder=lambda name: open_embedder(name, config.model.threads),
    )
