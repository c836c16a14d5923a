import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from flare_runtime.errors import ModelError
from flare_runtime.model_store import models_root
from flare_runtime.retrieval.embedder import load_embedder
from flare_runtime.retrieval.pair_classifier import BATCH_SIZE, load_pair_classifier
from flare_runtime.retrieval.rerank import (
    CrossEncoderReranker,
    LateInteractionReranker,
    ScoreKind,
    max_sim,
    rank_by_relevance,
    relevance,
    relevant,
)
from flare_runtime.types import Passage

EMBEDDER = models_root() / "all-minilm-l6-v2"
FINITE = st.floats(-60, 60)


def passage(text: str, title: str = "") -> Passage:
    return Passage(text, text, title, "file.md", 0, len(text))


class Scripted:
    """A classifier with given outputs that counts its calls."""

    name = "scripted"

    def __init__(self, outputs: list[list[float]], score_kind: ScoreKind = "logits") -> None:
        self._outputs = outputs
        self.num_classes = len(outputs[0]) if outputs else 1
        self.score_kind: ScoreKind = score_kind
        self.calls: list[tuple[str, list[str]]] = []

    def classify(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append((query, list(texts)))
        return np.array(self._outputs, dtype=np.float32)


class OneHot:
    """An embedder whose token vectors are one axis a letter."""

    name = "one-hot"
    dimension = 26
    max_tokens = 100

    def count_tokens(self, text: str) -> int:
        return len(text)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise NotImplementedError

    def token_vectors(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], ...]:
        axes = np.eye(26, dtype=np.float32)
        return tuple(axes[[ord(letter) - ord("a") for letter in text]] for text in texts)


def test_sigmoid_is_applied_once() -> None:
    scores = relevance([4.2, -3.1, 0.3])
    assert scores == pytest.approx((0.985226, 0.043107, 0.574443), abs=1e-5)
    assert relevance([[4.2], [-3.1], [0.3]]) == scores
    assert relevant(scores, 0.5) == (0, 2)


def test_probabilities_are_not_squashed_again() -> None:
    assert relevance([0.007, 0.9], "probabilities") == (0.007, 0.9)
    assert relevance([[0.25, 0.75]], "probabilities") == (0.75,)
    assert relevant(relevance([0.007, 0.9], "probabilities"), 0.5) == (1,)


def test_of_two_classes_the_positive_one_counts() -> None:
    scores = relevance([[-1.0, 2.0], [3.0, -2.0]])
    assert scores == pytest.approx((0.952574, 0.006693), abs=1e-5)
    assert relevance([[-1.0, 2.0]], positive_class=0) == pytest.approx((1 - 0.952574,), abs=1e-5)
    assert rank_by_relevance(scores) == (0, 1)


@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2)), elements=FINITE))
def test_two_classes_equal_softmax(logits: NDArray[np.float64]) -> None:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = powers[:, 1] / powers.sum(axis=1)
    np.testing.assert_allclose(relevance(logits), expected, atol=1e-12)


@given(st.lists(FINITE, min_size=1))
def test_one_class_equals_logistic_function(logits: list[float]) -> None:
    expected = [1 / (1 + math.exp(-logit)) for logit in logits]
    np.testing.assert_allclose(relevance(logits), expected, atol=1e-12)


def test_extreme_logits_do_not_overflow() -> None:
    assert relevance([1e4, -1e4, math.inf, -math.inf]) == (1.0, 0.0, 1.0, 0.0)


def test_no_scores() -> None:
    assert relevance([]) == ()
    assert relevance(np.zeros((0, 2))) == ()
    assert rank_by_relevance(()) == ()


@pytest.mark.parametrize("outputs", [[[1.0, 2.0, 3.0]], [[[1.0]]]])
def test_other_shapes_are_refused(outputs: list[list[float]]) -> None:
    with pytest.raises(ModelError, match="1 or 2 scores a pair"):
        relevance(outputs)


def test_positive_class_must_exist() -> None:
    with pytest.raises(ModelError, match="0 or 1, was: 2"):
        relevance([[1.0, 2.0]], positive_class=2)


@given(st.lists(st.floats(allow_nan=True)))
def test_nan_comes_last_and_ties_stay(scores: list[float]) -> None:
    order = rank_by_relevance(scores)
    assert sorted(order) == list(range(len(scores)))
    ranked = [scores[position] for position in order]
    known = [score for score in ranked if not math.isnan(score)]
    assert known == sorted(known, reverse=True)
    assert all(math.isnan(score) for score in ranked[len(known) :])
    for before, after in zip(order, order[1:], strict=False):
        if scores[before] == scores[after]:
            assert before < after


def test_nan_is_never_relevant() -> None:
    assert relevant([math.nan, 0.2, 0.7], 0.0) == (1, 2)
    assert relevant([0.5], 0.5) == (0,)


def test_cross_encoder_reads_pairs_with_their_titles() -> None:
    model = Scripted([[2.0], [-2.0]])
    reranker = CrossEncoderReranker(model)
    scores = reranker.rerank("why", [passage("because", "Causes"), passage("no")])
    assert scores == relevance([2.0, -2.0])
    assert model.calls == [("why", ["Causes\nbecause", "no"])]
    assert reranker.name == "cross_encoder/scripted"


def test_cross_encoder_of_two_classes_and_of_probabilities() -> None:
    two = CrossEncoderReranker(Scripted([[-1.0, 2.0]]))
    assert two.rerank("q", [passage("p")]) == pytest.approx((0.952574,), abs=1e-6)
    swapped = CrossEncoderReranker(Scripted([[-1.0, 2.0]]), positive_class=0)
    assert swapped.rerank("q", [passage("p")]) == pytest.approx((1 - 0.952574,), abs=1e-6)
    done = CrossEncoderReranker(Scripted([[0.25]], "probabilities"))
    assert done.rerank("q", [passage("p")]) == (0.25,)


def test_nothing_in_nothing_out_and_the_model_is_not_called() -> None:
    model = Scripted([])
    assert CrossEncoderReranker(model).rerank("q", []) == ()
    assert model.calls == []
    assert LateInteractionReranker(OneHot()).rerank("q", []) == ()


@pytest.mark.parametrize("num_classes", [0, 3, 5])
def test_models_without_one_relevant_class_are_refused(num_classes: int) -> None:
    model = Scripted([[0.0] * num_classes])
    with pytest.raises(ModelError, match=f"scripted has {num_classes}"):
        CrossEncoderReranker(model)


def test_late_interaction_counts_query_tokens_that_are_met() -> None:
    reranker = LateInteractionReranker(OneHot())
    scores = reranker.rerank(
        "abcd", [passage("dcba"), passage("abxx"), passage("xyz"), passage("")]
    )
    assert scores == (1.0, 0.5, 0.0, 0.0)
    assert reranker.rerank("", [passage("abc")]) == (0.0,)
    assert reranker.name == "late_interaction/one-hot"


@given(seed=st.integers(0, 1000), num_asked=st.integers(1, 5), num_found=st.integers(1, 7))
def test_max_sim_equals_two_loops(seed: int, num_asked: int, num_found: int) -> None:
    rng = np.random.default_rng(seed)
    asked = rng.standard_normal((num_asked, 4)).astype(np.float32)
    found = rng.standard_normal((num_found, 4)).astype(np.float32)
    best = [max(float(np.dot(a, f)) for f in found) for a in asked]
    assert max_sim(asked, found) == pytest.approx(sum(best) / num_asked, abs=1e-5)


@pytest.mark.real_model
def test_late_interaction_prefers_the_answer() -> None:
    reranker = LateInteractionReranker(load_embedder(EMBEDDER, "minilm"))
    scores = reranker.rerank(
        "How do I prime the pump?",
        [
            passage("The cafeteria opens at nine."),
            passage("Fill the pump with water to prime it before starting."),
            passage("The pump is painted blue."),
        ],
    )
    assert rank_by_relevance(scores)[0] == 1
    assert rank_by_relevance(scores)[-1] == 0
    assert all(0.0 < score <= 1.0 for score in scores)


@pytest.fixture(scope="module")
def classifier_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with random weights and two classes."""
    return save_classifier(tmp_path_factory.mktemp("classifier"), num_labels=2)


def save_classifier(folder: Path, num_labels: int) -> Path:
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30522,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=40,
        num_labels=num_labels,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(EMBEDDER, local_files_only=True).save_pretrained(folder)
    return folder


@pytest.mark.real_model
def test_classifier_from_a_folder_equals_the_library(classifier_folder: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(classifier_folder)
    model = AutoModelForSequenceClassification.from_pretrained(classifier_folder).eval()
    texts = [f"passage {'word ' * (number % 7)}{number}" for number in range(BATCH_SIZE + 3)]
    expected = []
    for text in texts:
        with torch.no_grad():
            logits = model(**tokenizer("a query", text, return_tensors="pt")).logits[0]
        expected.append(torch.softmax(logits, dim=-1)[1].item())
    reranker = CrossEncoderReranker(load_pair_classifier(classifier_folder, "tiny"))
    scores = reranker.rerank("a query", [passage(text) for text in texts])
    np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.real_model
def test_pairs_that_are_too_long_are_cut(classifier_folder: Path) -> None:
    classifier = load_pair_classifier(classifier_folder, "tiny")
    for query, text in (("q", "word " * 100), ("word " * 100, "p"), ("word " * 90, "word " * 90)):
        assert np.isfinite(classifier.classify(query, [text])).all()


@pytest.mark.real_model
def test_three_classes_are_refused_at_load(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path, num_labels=3)
    with pytest.raises(ModelError, match="nli has 3"):
        CrossEncoderReranker(load_pair_classifier(folder, "nli"))


@pytest.mark.real_model
def test_model_without_a_trained_head_is_refused() -> None:
    with pytest.raises(ModelError, match="weights lack classifier"):
        load_pair_classifier(EMBEDDER, "minilm")


@pytest.mark.real_model
def test_tokenizer_without_padding_is_refused(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path, num_labels=1)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["pad_token"] = None
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match="no padding token"):
        load_pair_classifier(folder, "tiny")


@pytest.mark.real_model
def test_incomplete_classifier_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no reranker at"):
        load_pair_classifier(tmp_path / "nowhere", "x")
    folder = save_classifier(tmp_path, num_labels=1)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="cannot load the reranker"):
        load_pair_classifier(folder, "x")
