"""Graphs that must not be served, and what is said of them."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from flare_runtime.errors import ModelError
from flare_runtime.language_model.onnx import OnnxModel

IDS = [72, 101, 108]


@pytest.fixture
def graph(fp32_graph: Path, tmp_path: Path) -> Path:
    return shutil.copytree(fp32_graph, tmp_path / "graph")


def write_graph(folder: Path, model: onnx.ModelProto) -> None:
    """Put another graph in the folder, and its size in the manifest."""
    onnx.save(model, folder / "model.onnx")
    manifest = json.loads((folder / "flare-graph.json").read_text())
    manifest["files"]["model.onnx"] = (folder / "model.onnx").stat().st_size
    (folder / "flare-graph.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("name", ["model.onnx", "model.onnx.data", "tokenizer.json"])
def test_a_truncated_file_is_refused(graph: Path, name: str) -> None:
    content = (graph / name).read_bytes()
    (graph / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelError, match=rf"{name} must have \d+ bytes, has \d+; .*models build"):
        OnnxModel.load(graph, "m", threads=1)


@pytest.mark.parametrize("name", ["model.onnx", "model.onnx.data"])
def test_a_missing_file_is_refused(graph: Path, name: str) -> None:
    (graph / name).unlink()
    with pytest.raises(ModelError, match=f"{name} must have .* has none; .*models build"):
        OnnxModel.load(graph, "m", threads=1)


@pytest.mark.parametrize("name", ["model.onnx"])
def test_a_damaged_graph_is_refused(graph: Path, name: str) -> None:
    size = (graph / name).stat().st_size
    (graph / name).write_bytes(b"\x00\xff" * (size // 2) + b"\x00" * (size % 2))
    with pytest.raises(ModelError, match="cannot open the graph in .*models build"):
        OnnxModel.load(graph, "m", threads=1)


@pytest.mark.parametrize("content", ["", "{}", '{"format": 1}'])
def test_a_damaged_manifest_is_refused(graph: Path, content: str) -> None:
    (graph / "flare-graph.json").write_text(content)
    with pytest.raises(ModelError, match="flare-graph.json is damaged; remove"):
        OnnxModel.load(graph, "m", threads=1)


def test_a_folder_without_manifest_is_refused(graph: Path) -> None:
    (graph / "flare-graph.json").unlink()
    with pytest.raises(ModelError, match="must be made by `flare models build`"):
        OnnxModel.load(graph, "m", threads=1)


def test_a_graph_of_something_else_is_refused(graph: Path) -> None:
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in ("x", "y")]
    relu = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    write_graph(graph, helper.make_model(relu, opset_imports=[helper.make_opsetid("", 20)]))
    with pytest.raises(ModelError, match="one of `flare models build`, its inputs were: x"):
        OnnxModel.load(graph, "m", threads=1)


def test_layers_that_a_graph_lacks_are_named_with_the_command(graph: Path) -> None:
    """A graph of fewer layers than the critic reads, as an older build may have."""
    model = onnx.load(graph / "model.onnx", load_external_data=False)
    for output in [
        o for o in model.graph.output if o.name in ("hidden_states.1", "hidden_states.3")
    ]:
        model.graph.output.remove(output)
    write_graph(graph, model)
    opened = OnnxModel.load(graph, "tiny", threads=1)
    assert opened.layers == {0, 2}
    assert opened.forward(IDS, opened.new_cache(), (2,)).hidden.shape == (3, 1, 32)
    with pytest.raises(ModelError, match=r"\(0, 2\), was: \[1, 2\].*flare models build"):
        opened.forward(IDS, opened.new_cache(), (1, 2))


def test_only_the_logits_asked_for_are_computed(fp32_graph: Path) -> None:
    """The head runs on the rows it is given: none of a long prompt's first part, say."""
    graph = onnx.load(fp32_graph / "model.onnx", load_external_data=False).graph
    head = next(node for node in graph.node if "logits" in node.output)
    rows = next(node for node in graph.node if head.input[0] in node.output)
    assert rows.op_type == "Gather"
    assert rows.input[1] == "logit_positions"
    model = OnnxModel.load(fp32_graph, "m", threads=1)
    ids = np.random.default_rng(0).integers(0, 256, 520).tolist()
    few = model.forward(ids, model.new_cache(), (), num_logits=3).logits
    every = model.forward(ids, model.new_cache(), (), num_logits=len(ids)).logits
    assert few.shape == (3, 258)
    np.testing.assert_allclose(few, every[-3:], atol=1e-5)
