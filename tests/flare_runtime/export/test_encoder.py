"""Tiny encoders with random weights, exported and held against transformers."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from transformers import (
    AutoModel,
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5Model,
)

from flare_runtime.errors import ModelError
from flare_runtime.export.encoder import export_encoder

SIZES = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
}
DISTIL = {"vocab_size": 50, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
MODELS = {
    "bert": (BertModel, BertConfig(**SIZES)),
    "roberta": (RobertaModel, RobertaConfig(**SIZES, type_vocab_size=1, pad_token_id=1)),
    "distilbert": (DistilBertModel, DistilBertConfig(**DISTIL, max_position_embeddings=40)),
}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "graph"
    folder.mkdir()
    return folder


def save(kind: str, folder: Path) -> Path:
    torch.manual_seed(3)
    architecture, config = MODELS[kind]
    architecture(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", MODELS)
def test_the_graph_computes_what_the_model_does(kind: str, tmp_path: Path, target: Path) -> None:
    source = save(kind, tmp_path / "source")
    export_encoder(source, target)
    model = AutoModel.from_pretrained(source).eval()
    session = onnxruntime.InferenceSession(target / "model.onnx")
    inputs = {item.name: item for item in session.get_inputs()}
    types = set() if kind == "distilbert" else {"token_type_ids"}
    assert inputs.keys() == {"input_ids", "attention_mask"} | types
    assert {item.type for item in inputs.values()} == {"tensor(int64)"}
    (output,) = session.get_outputs()
    assert (output.name, output.shape[-1]) == ("last_hidden_state", 32)

    pad = model.config.pad_token_id
    for batch, length in ((1, 2), (1, 5), (5, 1), (4, 30)):
        ids = np.random.default_rng(batch).integers(4, 50, (batch, length))
        lengths = np.arange(batch) % length + 1
        mask = (np.arange(length) < lengths[:, None]).astype(np.int64)
        ids = np.where(mask == 1, ids, pad)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = session.run(None, {name: feed[name] for name in inputs})
        with torch.no_grad():
            output = model(torch.from_numpy(ids), torch.from_numpy(mask)).last_hidden_state
        kept = mask == 1
        np.testing.assert_allclose(states[kept], output.numpy()[kept], atol=1e-5)


def test_the_graph_lies_beside_its_weights_and_names_no_path(tmp_path: Path, target: Path) -> None:
    export_encoder(save("bert", tmp_path / "source"), target)
    assert {path.name for path in target.iterdir()} == {"model.onnx", "model.onnx.data"}
    graph = onnx.load(target / "model.onnx", load_external_data=False)
    assert not any(node.metadata_props or node.doc_string for node in graph.graph.node)
    written = (target / "model.onnx").read_bytes()
    assert str(Path(torch.__file__).parent).encode() not in written
    assert b".py" not in written


def test_silent_and_the_same_bytes_in_another_process(tmp_path: Path, target: Path) -> None:
    source = save("bert", tmp_path / "source")
    program = """
import sys
from pathlib import Path
from flare_runtime.export.encoder import export_encoder
export_encoder(Path(sys.argv[1]), Path(sys.argv[2]))
"""
    again = tmp_path / "again"
    again.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, str(source), str(again)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    export_encoder(source, target)
    for name in ("model.onnx", "model.onnx.data"):
        assert (target / name).read_bytes() == (again / name).read_bytes()


def test_an_architecture_that_cannot_be_exported_is_refused(tmp_path: Path, target: Path) -> None:
    source = tmp_path / "source"
    config = T5Config(vocab_size=50, d_model=16, d_kv=4, d_ff=32, num_layers=1, num_heads=4)
    T5Model(config).save_pretrained(source)
    # The decoder has no input of its own.
    with pytest.raises(ModelError, match=r"T5Model does not fit ONNX \(You must specify exactly"):
        export_encoder(source, target)
    assert not list(target.iterdir())


def test_a_source_that_cannot_be_loaded_is_refused(tmp_path: Path, target: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(ModelError, match="cannot load the encoder in .*; pull the model again"):
        export_encoder(source, target)


def test_a_source_with_missing_weights_is_refused(tmp_path: Path, target: Path) -> None:
    from safetensors.numpy import load_file, save_file

    source = save("bert", tmp_path / "source")
    weights = load_file(source / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, source / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="lack encoder.layer.1.output.dense.weight"):
        export_encoder(source, target)
