"""Base models by content: pulled from packages or the hub, checked by hash, found by name."""

from flare_runtime.model_store.content import TEXT_FILES, read_json
from flare_runtime.model_store.folders import (
    ModelStatus,
    list_models,
    model_kind,
    models_root,
    resolve_model,
)
from flare_runtime.model_store.graph_manifest import GraphManifest, read_graph_manifest
from flare_runtime.model_store.graphs import find_graph, graph_folder, is_built
from flare_runtime.model_store.manifest import ModelManifest, read_manifest
from flare_runtime.model_store.pull import Progress, Stage, pull
from flare_runtime.model_store.registry import Kind

__all__ = [
    "TEXT_FILES",
    "GraphManifest",
    "Kind",
    "ModelManifest",
    "ModelStatus",
    "Progress",
    "Stage",
    "find_graph",
    "graph_folder",
    "is_built",
    "list_models",
    "model_kind",
    "models_root",
    "pull",
    "read_graph_manifest",
    "read_json",
    "read_manifest",
    "resolve_model",
]
