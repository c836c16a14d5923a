"""One small model, served by every engine in every precision."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from flare_runtime.export import build
from flare_runtime.language_model import LanguageModel
from flare_runtime.language_model.onnx import OnnxModel
from flare_runtime.language_model.transformers import TransformersModel

WINDOW = 600
"""Longer than two passes of the ONNX engine."""


@dataclass(frozen=True)
class Served:
    """A model on one engine; ``is_exact`` where its numbers are fp32's."""

    model: LanguageModel
    is_exact: bool
    least_cosine: float


@pytest.fixture(scope="session")
def source_folder(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "tiny"
    shutil.copytree(tiny_model_folder, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": WINDOW}))
    return folder


@pytest.fixture(scope="session")
def fp32_graph(source_folder: Path) -> Path:
    return build(str(source_folder), "fp32")


@pytest.fixture(scope="session")
def int8_graph(source_folder: Path) -> Path:
    return build(str(source_folder), "int8")


@pytest.fixture(
    scope="session", params=["transformers-fp32", "onnx-fp32", "onnx-int8", "onnx-int4"]
)
def served(request: pytest.FixtureRequest, source_folder: Path) -> Served:
    engine, precision = request.param.split("-")
    if engine == "transformers":
        return Served(TransformersModel.load(source_folder, "tiny", threads=1), True, 0.99999)
    model = OnnxModel.load(build(str(source_folder), precision), "tiny", threads=1)
    return Served(
        model, precision == "fp32", {"fp32": 0.99999, "int8": 0.99, "int4": 0.8}[precision]
    )
