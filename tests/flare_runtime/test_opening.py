"""Which engine serves a model, as settings and folders have it."""

import shutil
from pathlib import Path

import pytest

from flare_runtime.config import ModelConfig
from flare_runtime.errors import ModelError
from flare_runtime.export import build
from flare_runtime.opening import load_model


@pytest.fixture(scope="module")
def built(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "tiny"
    shutil.copytree(tiny_model_folder, folder)
    build(str(folder), "int8")
    return folder


@pytest.mark.parametrize(
    ("settings", "engine"),
    [
        ({}, "onnx int8"),
        ({"engine": "onnx"}, "onnx int8"),
        ({"engine": "transformers"}, "transformers float32"),
        ({"engine": "transformers", "dtype": "bfloat16"}, "transformers bfloat16"),
        ({"precision": "fp32"}, "transformers float32"),
    ],
)
def test_the_graph_serves_where_there_is_one_and_nobody_objects(
    built: Path, settings: dict[str, str], engine: str
) -> None:
    assert load_model(str(built), ModelConfig(threads=1, **settings)).engine == engine


def test_a_graph_can_be_the_model(built: Path) -> None:
    model = load_model(str(built / "onnx-int8"), ModelConfig(threads=1))
    assert model.engine == "onnx int8"
    with pytest.raises(ModelError, match="is an ONNX graph.*name its source, .*tiny"):
        load_model(str(built / "onnx-int8"), ModelConfig(engine="transformers"))


def test_a_graph_that_is_asked_for_must_be_there(built: Path) -> None:
    with pytest.raises(ModelError, match="has no int4 graph; run `flare models build .*int4`"):
        load_model(str(built), ModelConfig(engine="onnx", precision="int4"))


def test_a_stale_graph_is_refused_with_both_ways_out(built: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(built, tmp_path / "model")
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    with pytest.raises(ModelError, match=r"another model.*models build .*engine=transformers"):
        load_model(str(folder), ModelConfig(threads=1))
    settings = ModelConfig(engine="transformers", threads=1)
    assert load_model(str(folder), settings).engine == "transformers float32"
