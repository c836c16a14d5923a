"""Opens the parts of an engine from their names and settings."""

from pathlib import Path
from typing import TYPE_CHECKING

from flare_runtime.config import FlareConfig, ModelConfig
from flare_runtime.language_model import LanguageModel
from flare_runtime.model_store import find_graph, resolve_model

if TYPE_CHECKING:
    from flare_runtime.retrieval.hybrid import HybridRetriever


def load_model(name: str, config: ModelConfig | None = None) -> LanguageModel:
    """Open the generator by a name of ``flare models list``, a folder, or a pulled hub name.

    Raises:
        ModelError: the model is not there, incomplete, or cannot be served, or its graph is not
            the one that is asked for.
    """
    settings = config or ModelConfig()
    folder = resolve_model(name, "generator")
    graph = find_graph(name, folder, settings.engine, settings.precision)
    if graph:
        from flare_runtime.language_model.onnx import OnnxModel

        return OnnxModel.load(graph, name, settings.threads)
    from flare_runtime.language_model.transformers import TransformersModel

    return TransformersModel.load(folder, name, settings.dtype, settings.threads)


def open_retriever(index: Path, config: FlareConfig) -> "HybridRetriever":
    """Open an index with the embedder that made it.

    Raises:
        CorpusIndexError: the index is missing or damaged.
        ModelError: its embedder or the configured reranker is not there.
    """
    from flare_runtime.retrieval.embedder import open_embedder
    from flare_runtime.retrieval.hybrid import HybridRetriever

    return HybridRetriever.load(
        index,
        config.retrieval,
        open_embedder=lambda name: open_embedder(name, config.model.threads),
    )
