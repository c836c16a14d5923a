"""The same suite over both engines; transformers' own classes are the oracle."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from flare_runtime.errors import ModelError
from flare_runtime.export.encoder import export_encoder
from flare_runtime.model_store import models_root
from flare_runtime.retrieval.embedder import Embedder, load_embedder
from flare_runtime.retrieval.sentence_encoder import MAX_BATCH_TOKENS

FOLDER = models_root() / "all-minilm-l6-v2"
WEIGHTS = ("model.safetensors", "model.onnx.data", "model.onnx")
TEXTS = (
    "The pump must be primed before the first start.",
    "Rollback",
    "",
    "E-4013 means the door is open; close it and press reset twice. " * 2,
    "ポンプを交換する",
    "The pump must be primed before the first start.",
)

pytestmark = pytest.mark.real_model


@pytest.fixture(scope="session")
def graph_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("graph") / "minilm"
    shutil.copytree(FOLDER, target, ignore=shutil.ignore_patterns("*.safetensors", "onnx-*"))
    export_encoder(FOLDER, target)
    return target


@pytest.fixture(scope="module")
def transformers_embedder() -> Embedder:
    return load_embedder(FOLDER, "minilm", threads=1)


@pytest.fixture(scope="module")
def onnx_embedder(graph_folder: Path) -> Embedder:
    return load_embedder(graph_folder, "minilm", threads=1)


@pytest.fixture(scope="module", params=["transformers", "onnx"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return request.getfixturevalue(f"{request.param}_embedder")


@pytest.fixture(params=["transformers", "onnx"])
def folder(request: pytest.FixtureRequest, graph_folder: Path, tmp_path: Path) -> Path:
    """A copy without the weights' bytes: small files copied, weights linked."""
    source = FOLDER if request.param == "transformers" else graph_folder
    copy = tmp_path / "model"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns(*WEIGHTS, "onnx-*"))
    for name in WEIGHTS:
        if (source / name).exists():
            (copy / name).symlink_to(source / name)
    return copy


@pytest.fixture(scope="module")
def reference():
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    return tokenizer, AutoModel.from_pretrained(FOLDER, local_files_only=True).eval()


def reference_states(reference, text: str) -> np.ndarray:
    import torch

    tokenizer, model = reference
    encoded = tokenizer(text, return_tensors="pt", truncation=True, max_length=256)
    with torch.no_grad():
        return model(**encoded).last_hidden_state[0].numpy()


def test_vectors_equal_masked_mean_of_the_model(embedder: Embedder, reference) -> None:
    for text in (*TEXTS, "valve " * 400):
        mean = reference_states(reference, text).mean(axis=0)
        expected = mean / np.linalg.norm(mean)
        np.testing.assert_allclose(embedder.embed([text])[0], expected, atol=1e-5)


def test_token_vectors_equal_states_of_the_model(embedder: Embedder, reference) -> None:
    for text, vectors in zip(TEXTS, embedder.token_vectors(TEXTS), strict=True):
        states = reference_states(reference, text)[1:-1]  # [CLS] and [SEP] left out
        expected = states / np.linalg.norm(states, axis=1, keepdims=True)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_both_engines_give_the_same(
    transformers_embedder: Embedder, onnx_embedder: Embedder
) -> None:
    texts = [f"{TEXTS[number % len(TEXTS)]} {number} " * number for number in range(18)]
    left, right = transformers_embedder, onnx_embedder
    assert left.dimension == right.dimension
    assert left.max_tokens == right.max_tokens
    np.testing.assert_allclose(left.embed(texts), right.embed(texts), atol=1e-5)
    for ours, theirs in zip(left.token_vectors(texts), right.token_vectors(texts), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_batch_equals_one_by_one_in_input_order(embedder: Embedder) -> None:
    texts = [f"{'valve ' * (number % 50)}{number}" for number in range(60)] + list(TEXTS)
    assert sum(embedder.count_tokens(text) for text in texts) > MAX_BATCH_TOKENS
    together = embedder.embed(texts)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_padding_changes_nothing(embedder: Embedder) -> None:
    padded = embedder.embed([TEXTS[1], TEXTS[3]])[0]
    np.testing.assert_allclose(padded, embedder.embed([TEXTS[1]])[0], atol=1e-5)
    padded_tokens = embedder.token_vectors([TEXTS[1], TEXTS[3]])[0]
    np.testing.assert_allclose(padded_tokens, embedder.token_vectors([TEXTS[1]])[0], atol=1e-5)


def test_vectors_have_unit_length(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    for tokens in embedder.token_vectors(TEXTS):
        np.testing.assert_allclose(np.linalg.norm(tokens, axis=1), 1.0, atol=1e-5)


def test_token_vectors_leave_special_tokens_out(embedder: Embedder) -> None:
    vectors = embedder.token_vectors(TEXTS)
    assert [len(tokens) for tokens in vectors] == [embedder.count_tokens(text) for text in TEXTS]
    assert vectors[2].shape == (0, embedder.dimension)


def test_equal_texts_get_equal_vectors_and_meaning_is_near(embedder: Embedder) -> None:
    vectors = embedder.embed([TEXTS[0], "Fill the pump with water before starting it.", TEXTS[1]])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


def test_long_text_counts_in_full_and_is_truncated_for_its_vector(
    embedder: Embedder,
) -> None:
    assert embedder.max_tokens == 254
    long = "valve " * 400
    assert embedder.count_tokens(long) == 400
    assert len(embedder.token_vectors([long])[0]) == 254
    np.testing.assert_allclose(embedder.embed([long]), embedder.embed(["valve " * 254]), atol=1e-5)


def test_no_texts(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, 384)
    assert embedder.token_vectors([]) == ()


def test_lone_surrogate_is_not_fatal(embedder: Embedder) -> None:
    assert np.isfinite(embedder.embed(["half an emoji \ud83d here"])).all()
    assert embedder.count_tokens("\ud83d") == embedder.count_tokens("?")


def test_first_token_pooling_is_read_from_the_folder(folder: Path, reference) -> None:
    settings = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    first = reference_states(reference, TEXTS[0])[0]
    vector = load_embedder(folder, "first").embed([TEXTS[0]])[0]
    np.testing.assert_allclose(vector, first / np.linalg.norm(first), atol=1e-5)


def test_without_sentence_settings_the_model_sets_limit_and_mean_is_pooled(folder: Path) -> None:
    shutil.rmtree(folder / "1_Pooling")
    (folder / "sentence_bert_config.json").unlink()
    plain = load_embedder(folder, "plain")
    assert plain.max_tokens == 510
    assert plain.name == "plain"


def test_other_pooling_is_refused(folder: Path) -> None:
    settings = {"pooling_mode_max_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match="pooling_mode_max_tokens"):
        load_embedder(folder, "max")


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no embedder at"):
        load_embedder(tmp_path / "nowhere", "x")


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
def test_incomplete_folder_is_refused(folder: Path, file: str) -> None:
    verb = "build" if (folder / "model.onnx").exists() else "pull"
    (folder / file).unlink()
    with pytest.raises(ModelError, match=f"no {file}: .*run `flare models {verb} minilm`"):
        load_embedder(folder, "minilm")


def test_folder_without_weights_is_refused(folder: Path) -> None:
    for name in WEIGHTS:
        (folder / name).unlink(missing_ok=True)
    with pytest.raises(ModelError, match="cannot load the embedder .*`flare models pull minilm`"):
        load_embedder(folder, "minilm")


def test_truncated_weights_are_refused(folder: Path) -> None:
    name = next(name for name in WEIGHTS if (folder / name).exists())
    with (folder / name).open("rb") as stream:
        beginning = stream.read(100_000)
    (folder / name).unlink()
    (folder / name).write_bytes(beginning)
    with pytest.raises(ModelError, match="cannot load .*; run `flare models (pull|build) minilm`$"):
        load_embedder(folder, "minilm")


def test_incomplete_weights_are_refused(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    copy = tmp_path / "model"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns(*WEIGHTS, "onnx-*"))
    weights = load_file(FOLDER / "model.safetensors")
    del weights["encoder.layer.3.output.dense.weight"]
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="lack encoder.layer.3.*`flare models pull minilm`"):
        load_embedder(copy, "minilm")


@pytest.mark.parametrize("content", ["{broken", "[1, 2]"])
def test_damaged_settings_are_refused(folder: Path, content: str) -> None:
    (folder / "1_Pooling" / "config.json").write_text(content)
    with pytest.raises(ModelError, match="; run `flare models (pull|build) minilm`$"):
        load_embedder(folder, "minilm")
