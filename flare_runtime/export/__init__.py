"""Turns a pulled model into a graph that plain onnxruntime runs. Used at build time only."""

from flare_runtime.export.build import build

__all__ = ["build"]
