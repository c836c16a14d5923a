"""From a model folder to a graph: whole or not at all, and only when needed."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock
from safetensors.numpy import load_file, save_file
from transformers import MambaConfig, MambaForCausalLM, MistralConfig, MistralForCausalLM

from flare_runtime.errors import ModelError
from flare_runtime.export import build
from flare_runtime.export.extra import REQUIRED
from flare_runtime.language_model.onnx import OnnxModel
from flare_runtime.model_store import is_built, read_graph_manifest


class Stages:
    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int]] = []

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.seen.append((stage, done, total))


def test_the_manifest_tells_of_what_a_graph_was_made(built: Path) -> None:
    manifest = read_graph_manifest(built / "onnx-fp32")
    weights = (built / "model.safetensors").read_bytes()
    assert manifest.source == str(built)
    assert manifest.kind == "generator"
    assert manifest.precision == "fp32"
    assert manifest.layers == (0, 1, 2, 3)
    assert manifest.source_sha256 == hashlib.sha256(weights).hexdigest()
    assert manifest.agreement == 1.0
    assert {"model.onnx", "tokenizer.json", "chat_template.jinja"} <= set(manifest.files)
    assert not (built / "onnx-fp32" / "genai_config.json").exists()


def test_a_current_graph_is_not_built_again(model_folder: Path) -> None:
    stages = Stages()
    before = (model_folder / "onnx-fp32" / "flare-graph.json").stat().st_mtime_ns
    folder = build(str(model_folder), "fp32", progress=stages)
    assert folder == model_folder / "onnx-fp32"
    assert stages.seen == []
    assert (folder / "flare-graph.json").stat().st_mtime_ns == before


def change_weights(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights = {name: np.ascontiguousarray(values[::-1]) for name, values in weights.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def change_template(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")


def cut_graph(folder: Path) -> None:
    data = folder / "onnx-fp32" / "model.onnx.data"
    data.write_bytes(data.read_bytes()[:-100])


def lose_manifest(folder: Path) -> None:
    (folder / "onnx-fp32" / "flare-graph.json").unlink()


@pytest.mark.parametrize("spoil", [change_weights, change_template, cut_graph, lose_manifest])
def test_what_is_not_current_or_not_whole_does_not_count_as_built(
    model_folder: Path, spoil
) -> None:
    assert is_built(model_folder / "onnx-fp32", model_folder)
    spoil(model_folder)
    assert not is_built(model_folder / "onnx-fp32", model_folder)


def test_a_stale_graph_is_replaced_and_what_a_killed_build_left_goes(model_folder: Path) -> None:
    change_weights(model_folder)
    leftover = model_folder / ".onnx-fp32.work-99999"
    leftover.mkdir()
    (leftover / "model.onnx.data").write_bytes(b"x")
    stages = Stages()
    folder = build(str(model_folder), "fp32", progress=stages)
    assert is_built(folder, model_folder)
    converted = [done for stage, done, total in stages.seen if stage == "convert"]
    assert converted == [0, 1, 2, 3]
    assert stages.seen[-1] == ("check", 1, 1)
    assert hidden_files(model_folder) == [".onnx-fp32.lock"]


def test_a_copied_folder_needs_no_new_graph(built: Path, tmp_path: Path) -> None:
    """Other times of change, same content."""
    copy = shutil.copytree(built, tmp_path / "copy", copy_function=shutil.copyfile)
    stages = Stages()
    build(str(copy), "fp32", progress=stages)
    assert stages.seen == []


def test_a_graph_can_be_written_elsewhere_and_stands_alone(built: Path, tmp_path: Path) -> None:
    source = shutil.copytree(built, tmp_path / "source")
    folder = build(str(source), "fp32", tmp_path / "deep" / "graph")
    shutil.rmtree(source)
    model = OnnxModel.load(folder, "m", threads=1)
    assert model.forward([1, 2], model.new_cache()).logits.shape == (1, 258)
    assert hidden_files(tmp_path / "deep") == [".graph.lock"]


def test_a_build_waits_for_another_and_finds_its_graph(built: Path, tmp_path: Path) -> None:
    source = shutil.copytree(built, tmp_path / "source")
    shutil.move(source / "onnx-fp32", tmp_path / "done")
    lock = FileLock(source / ".onnx-fp32.lock")
    lock.acquire()
    seen = []

    def progress(stage: str, done: int, total: int) -> None:
        seen.append(stage)
        if stage == "wait":
            shutil.move(tmp_path / "done", source / "onnx-fp32")
            lock.release()

    build(str(source), "fp32", progress=progress)
    assert seen == ["wait"]


def test_a_sliding_window_is_refused(plain_folder: Path) -> None:
    """The builder drops a window that is the same in every layer, so the graph would be wrong."""
    config = MistralConfig(
        vocab_size=258,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        sliding_window=64,
    )
    replace_model(plain_folder, MistralForCausalLM(config))
    with pytest.raises(
        ModelError, match="full attention in every layer.*window of 64 tokens.*another"
    ):
        build(str(plain_folder), "fp32")
    assert not (plain_folder / "onnx-fp32").exists()
    assert hidden_files(plain_folder) == [".onnx-fp32.lock"]


def test_a_recurrent_model_is_refused_with_the_builders_reason(plain_folder: Path) -> None:
    config = MambaConfig(vocab_size=258, hidden_size=32, num_hidden_layers=2, state_size=4)
    replace_model(plain_folder, MambaForCausalLM(config))
    with pytest.raises(
        ModelError, match="cannot convert .*not currently supported.*model.engine=transformers"
    ):
        build(str(plain_folder), "fp32")


def replace_model(folder: Path, model: torch.nn.Module) -> None:
    (folder / "config.json").unlink()
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder)


def test_truncated_weights_are_refused_with_the_builders_reason(plain_folder: Path) -> None:
    weights = plain_folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelError, match="cannot convert the model in .*model.engine=transformers"):
        build(str(plain_folder), "fp32")


@pytest.mark.parametrize("layers", [1, "many", None])
def test_a_model_without_layers_between_is_refused(plain_folder: Path, layers: object) -> None:
    config = json.loads((plain_folder / "config.json").read_text())
    (plain_folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": layers}))
    with pytest.raises(ModelError, match=f"2 or more num_hidden_layers.*was: {layers}"):
        build(str(plain_folder), "fp32")


@pytest.mark.parametrize("name", ["no-such-model", "org/absent", "/nowhere/at/all"])
def test_an_unknown_model_is_refused(name: str) -> None:
    with pytest.raises(ModelError):
        build(name)


def test_an_embedder_is_not_quantised() -> None:
    with pytest.raises(ModelError, match="embedder must be fp32, was: int8.*--precision fp32"):
        build("all-minilm-l6-v2", "int8")


def test_a_place_that_cannot_be_written_is_refused(plain_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelError, match="cannot write the graph to .*--output"):
        build(str(plain_folder), "fp32", tmp_path / "file" / "graph")


@pytest.mark.parametrize("package", REQUIRED)
def test_a_package_that_only_building_needs_is_named_with_the_extra(
    package: str, plain_folder: Path
) -> None:
    program = """
import sys
sys.modules[sys.argv[1]] = None  # as if it were not installed
from flare_runtime.cli import main
sys.exit(main(["models", "build", sys.argv[2], "--precision", "fp32"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, package, str(plain_folder)], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"flare: building a graph needs {package}; run pip install 'flare-runtime[export]'\n"
    )


def hidden_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))
