"""Answers a question one checked sentence at a time."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flare_runtime.blocklist import Blocklist
    from flare_runtime.config import FlareConfig
    from flare_runtime.engine import FlareEngine
    from flare_runtime.opening import load_model
    from flare_runtime.retrieval.hybrid import HybridRetriever
    from flare_runtime.settings import load_config

_HOMES = {
    "Blocklist": "flare_runtime.blocklist",
    "FlareConfig": "flare_runtime.config",
    "FlareEngine": "flare_runtime.engine",
    "HybridRetriever": "flare_runtime.retrieval.hybrid",
    "load_config": "flare_runtime.settings",
    "load_model": "flare_runtime.opening",
}

__all__ = [
    "Blocklist",
    "FlareConfig",
    "FlareEngine",
    "HybridRetriever",
    "load_config",
    "load_model",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that ``flare --help`` stays instant."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
