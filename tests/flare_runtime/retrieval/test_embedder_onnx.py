"""Hand-made graphs: a table of vectors is an encoder whose states are known without a model."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from flare_runtime.errors import ModelError
from flare_runtime.retrieval.embedder import load_embedder

WORDS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "pump", "valve", "door", "open")
DIMENSION = 4
TABLE = np.random.default_rng(5).normal(size=(len(WORDS), DIMENSION)).astype(np.float32)
BATCH = ["batch", "sequence"]
FLATTEN = helper.make_node("Flatten", ["rows"], ["last_hidden_state"], axis=2)
TURN = helper.make_node("Transpose", ["rows"], ["last_hidden_state"], perm=[0, 2, 1])


def write_graph(
    folder: Path,
    table: np.ndarray = TABLE,
    inputs: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids"),
    output: str = "last_hidden_state",
    ids_type: int = TensorProto.INT64,
    shape: list[str | int] = BATCH,
    out_shape: tuple[str | int, ...] = (*BATCH, DIMENSION),
    last: onnx.NodeProto | None = None,
) -> None:
    """States are rows of the table, by id."""
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", inputs[0]], ["rows"]),
            last or helper.make_node("Identity", ["rows"], [output]),
        ],
        "table",
        [helper.make_tensor_value_info(name, ids_type, shape) for name in inputs],
        [
            helper.make_tensor_value_info(
                output, helper.np_dtype_to_tensor_dtype(table.dtype), out_shape
            )
        ],
        [numpy_helper.from_array(table, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, folder / "model.onnx")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ids = {word: index for index, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    # Saved as a pipeline that pads all texts to 64: the embedder must not mind.
    tokenizer.enable_padding(length=64)
    tokenizer.enable_truncation(3)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    config = {"max_position_embeddings": 12, "pad_token_id": 0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    write_graph(tmp_path)
    return tmp_path


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_vectors_are_the_mean_of_the_table(folder: Path) -> None:
    embedder = load_embedder(folder, "table")
    assert (embedder.dimension, embedder.max_tokens) == (DIMENSION, 10)
    expected = [TABLE[[1, 4, 2]].mean(axis=0), TABLE[[1, 6, 7, 5, 2]].mean(axis=0)]
    np.testing.assert_allclose(
        embedder.embed(["pump", "door open valve"]), unit(np.array(expected)), atol=1e-6
    )
    vectors = embedder.token_vectors(["door open valve", "", "pump"])
    np.testing.assert_allclose(vectors[0], unit(TABLE[[6, 7, 5]]), atol=1e-6)
    assert vectors[1].shape == (0, DIMENSION)
    np.testing.assert_allclose(vectors[2], unit(TABLE[[4]]), atol=1e-6)


def test_graph_without_token_types(folder: Path) -> None:
    write_graph(folder, inputs=("input_ids", "attention_mask"))
    expected = unit(TABLE[[1, 4, 2]].mean(axis=0))
    np.testing.assert_allclose(load_embedder(folder, "t").embed(["pump"])[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        ({"inputs": ("input_ids",)}, "its inputs must be .*, were: input_ids"),
        ({"inputs": ("input_ids", "attention_mask", "past")}, "its inputs must be .* past"),
        ({"output": "logits"}, "must put out last_hidden_state, its outputs were: logits"),
        ({"ids_type": TensorProto.INT32}, r"must be int64 of any size, was: tensor\(int32\)"),
        ({"shape": [1, 16], "out_shape": (1, 16, DIMENSION)}, r"int64 of any size.*\[1, 16\]"),
        (
            {"last": FLATTEN, "out_shape": ("tokens", DIMENSION)},
            r"must be float32 of three axes, .* was: tensor\(float\) of \['tokens', 4\]",
        ),
        ({"last": TURN, "out_shape": ("batch", DIMENSION, "sequence")}, "the last of known size"),
        ({"table": TABLE.astype(np.float64)}, r"must be float32 .*, was: tensor\(double\)"),
    ],
)
def test_a_graph_that_is_no_encoder_is_refused(folder: Path, graph: dict, reason: str) -> None:
    write_graph(folder, **graph)
    with pytest.raises(ModelError, match=f"{reason}.*; run `flare models build table`$"):
        load_embedder(folder, "table")


@pytest.mark.parametrize("content", [None, b"", b"no graph at all"])
def test_a_damaged_graph_is_refused(folder: Path, content: bytes | None) -> None:
    path = folder / "model.onnx"
    path.write_bytes(path.read_bytes()[:80] if content is None else content)
    with pytest.raises(
        ModelError, match=r"cannot load .*model\.onnx: .*`flare models build table`"
    ):
        load_embedder(folder, "table")


def test_a_tokenizer_of_another_model_is_refused_when_it_shows(folder: Path) -> None:
    write_graph(folder, table=TABLE[:5])
    embedder = load_embedder(folder, "table")
    assert embedder.embed(["pump"]).shape == (1, DIMENSION)
    with pytest.raises(ModelError, match="graph failed: .*`flare models build table`"):
        embedder.embed(["door"])


def test_a_damaged_tokenizer_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"version": "1.0"')
    with pytest.raises(ModelError, match=r"cannot read .*tokenizer\.json: .*models build table`"):
        load_embedder(folder, "table")


@pytest.mark.parametrize(
    ("limits", "max_tokens"),
    [
        ({"tokenizer_config.json": {"model_max_length": 8}}, 6),
        ({"sentence_bert_config.json": {"max_seq_length": 5}}, 3),
        ({"tokenizer_config.json": {"model_max_length": 10**30}}, 10),
        ({"config.json": {}, "sentence_bert_config.json": {"max_seq_length": 700}}, 698),
        ({"tokenizer_config.json": {"model_max_length": None}}, 10),
    ],
)
def test_the_smallest_limit_given_holds(folder: Path, limits: dict, max_tokens: int) -> None:
    for file, settings in limits.items():
        (folder / file).write_text(json.dumps(settings))
    embedder = load_embedder(folder, "table")
    assert embedder.max_tokens == max_tokens
    (vectors,) = embedder.token_vectors(["pump " * 800])
    assert len(vectors) == max_tokens
    assert embedder.count_tokens("pump " * 800) == 800


def test_a_model_without_limit_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 10**30}))
    with pytest.raises(ModelError, match="does not say how long a text may be.*max_seq_length"):
        load_embedder(folder, "table")


def test_a_limit_that_leaves_no_room_is_refused(folder: Path) -> None:
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 2}')
    with pytest.raises(ModelError, match="at least 1 token .* its limit is 2; raise"):
        load_embedder(folder, "table")


def run_python(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def test_a_graph_needs_neither_torch_nor_transformers(folder: Path) -> None:
    program = """
import sys
from pathlib import Path
from flare_runtime.retrieval.embedder import load_embedder
embedder = load_embedder(Path(sys.argv[1]), "table", threads=1)
print(embedder.embed(["pump", "valve"]).shape, len(embedder.token_vectors(["door open"])[0]))
print({"torch", "transformers", "onnx"} & sys.modules.keys())
"""
    assert run_python(program, str(folder)) == f"(2, {DIMENSION}) 2\nset()\n"


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_weights_without_their_library_name_the_ways_out(folder: Path, package: str) -> None:
    (folder / "model.onnx").unlink()
    (folder / "model.safetensors").touch()
    program = """
import sys
from pathlib import Path
sys.modules[sys.argv[2]] = None  # as if it were not installed
from flare_runtime.errors import ModelError
from flare_runtime.retrieval.embedder import load_embedder
try:
    load_embedder(Path(sys.argv[1]), "table")
except ModelError as error:
    print(error)
"""
    message = run_python(program, str(folder), package)
    assert f"needs {package}: run pip install {package}, or `flare models build`" in message
