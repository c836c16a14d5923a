import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from flare_runtime.errors import ModelError
from flare_runtime.model_store import models_root
from flare_runtime.retrieval.embedder import BATCH_SIZE, TransformersEmbedder, load_embedder

FOLDER = models_root() / "all-minilm-l6-v2"
TEXTS = (
    "The pump must be primed before the first start.",
    "Rollback",
    "",
    "E-4013 means the door is open; close it and press reset twice. " * 2,
    "ポンプを交換する",
    "The pump must be primed before the first start.",
)

pytestmark = pytest.mark.real_model


@pytest.fixture(scope="module")
def embedder() -> TransformersEmbedder:
    return load_embedder(FOLDER, "minilm")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy without the weights' bytes: small files copied, weights linked."""
    copy = tmp_path / "model"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("*.safetensors"))
    (copy / "model.safetensors").symlink_to(FOLDER / "model.safetensors")
    return copy


def test_vectors_equal_masked_mean_of_the_model(embedder: TransformersEmbedder) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    model = AutoModel.from_pretrained(FOLDER, local_files_only=True).eval()
    for text in TEXTS:
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()
        mean = states.mean(axis=0)
        expected = mean / np.linalg.norm(mean)
        np.testing.assert_allclose(embedder.embed([text])[0], expected, atol=1e-5)


def test_batch_equals_one_by_one_in_input_order(embedder: TransformersEmbedder) -> None:
    texts = [f"{'valve ' * (number % 5)}{number}" for number in range(BATCH_SIZE)] + list(TEXTS)
    assert len(texts) > BATCH_SIZE
    together = embedder.embed(texts)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_padding_changes_nothing(embedder: TransformersEmbedder) -> None:
    padded = embedder.embed([TEXTS[1], TEXTS[3]])[0]
    np.testing.assert_allclose(padded, embedder.embed([TEXTS[1]])[0], atol=1e-5)
    padded_tokens = embedder.token_vectors([TEXTS[1], TEXTS[3]])[0]
    np.testing.assert_allclose(padded_tokens, embedder.token_vectors([TEXTS[1]])[0], atol=1e-5)


def test_vectors_have_unit_length(embedder: TransformersEmbedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    for tokens in embedder.token_vectors(TEXTS):
        np.testing.assert_allclose(np.linalg.norm(tokens, axis=1), 1.0, atol=1e-5)


def test_token_vectors_leave_special_tokens_out(embedder: TransformersEmbedder) -> None:
    vectors = embedder.token_vectors(TEXTS)
    assert [len(tokens) for tokens in vectors] == [embedder.count_tokens(text) for text in TEXTS]
    assert vectors[2].shape == (0, embedder.dimension)


def test_equal_texts_get_equal_vectors_and_meaning_is_near(embedder: TransformersEmbedder) -> None:
    vectors = embedder.embed([TEXTS[0], "Fill the pump with water before starting it.", TEXTS[1]])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


def test_long_text_counts_in_full_and_is_truncated_for_its_vector(
    embedder: TransformersEmbedder,
) -> None:
    assert embedder.max_tokens == 254
    long = "valve " * 400
    assert embedder.count_tokens(long) == 400
    assert len(embedder.token_vectors([long])[0]) == 254
    np.testing.assert_allclose(embedder.embed([long]), embedder.embed(["valve " * 254]), atol=1e-5)


def test_no_texts(embedder: TransformersEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 384)
    assert embedder.token_vectors([]) == ()


def test_lone_surrogate_is_not_fatal(embedder: TransformersEmbedder) -> None:
    assert np.isfinite(embedder.embed(["half an emoji \ud83d here"])).all()
    assert embedder.count_tokens("\ud83d") == embedder.count_tokens("?")


def test_first_token_pooling_is_read_from_the_folder(folder: Path) -> None:
    settings = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    model = AutoModel.from_pretrained(FOLDER, local_files_only=True).eval()
    with torch.no_grad():
        first = model(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state[0, 0].numpy()
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
    (folder / file).unlink()
    with pytest.raises(ModelError, match=f"no {file}"):
        load_embedder(folder, "x")


def test_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="cannot load the embedder"):
        load_embedder(folder, "x")


@pytest.mark.parametrize("content", ["{broken", "[1, 2]"])
def test_damaged_settings_are_refused(folder: Path, content: str) -> None:
    (folder / "1_Pooling" / "config.json").write_text(content)
    with pytest.raises(ModelError, match="pull the model again"):
        load_embedder(folder, "x")
