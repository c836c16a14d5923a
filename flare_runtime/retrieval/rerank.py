"""Reorder candidates by reading query and passage together, and what a model's scores mean."""

import math
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from flare_runtime.errors import ModelError
from flare_runtime.retrieval.corpus import indexed_text
from flare_runtime.retrieval.embedder import Embedder
from flare_runtime.types import Passage

ScoreKind = Literal["logits", "probabilities"]

MAX_CLASSES = 2


class Reranker(Protocol):
    """What hybrid search asks of a reranker."""

    @property
    def name(self) -> str:
        """What ``flare search --explain`` calls it."""
        ...

    @property
    def off_topic(self) -> float:
        """Relevance below which a passage has nothing to do with a query; 0 if that is not known.

        The default of ``retrieval.min_relevance``.
        """
        ...

    def rerank(self, query: str, passages: Sequence[Passage]) -> tuple[float, ...]:
        """Return one relevance a passage, in their order; larger is better, NaN is unknown."""
        ...


class PairClassifier(Protocol):
    """A model that reads a query and a passage at once (cross-encoder)."""

    @property
    def name(self) -> str:
        """Name of the model."""
        ...

    @property
    def num_classes(self) -> int:
        """Columns of its output."""
        ...

    @property
    def score_kind(self) -> ScoreKind:
        """Whether its output is raw, or has been through sigmoid or softmax already."""
        ...

    def classify(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the output for each pair. *Shape:* ``[N, num_classes]``."""
        ...


class LateInteractionReranker:
    """Relevance as the mean over query tokens of the best cosine among a passage's tokens.

    MaxSim of ColBERT (Khattab and Zaharia 2020, arXiv 2004.12832), divided by the number of query
    tokens so that one threshold fits queries of any length.

    ``off_topic`` is low on purpose. With all-MiniLM-L6-v2, questions that have nothing to do with
    the Harbor handbook reach .16 to .36 in it, and paraphrases that share no word with a passage
    that answers them .26 to .48: no threshold parts the two, a corpus has to set its own.
    """

    off_topic = 0.2

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name = f"late_interaction/{embedder.name}"

    def rerank(self, query: str, passages: Sequence[Passage]) -> tuple[float, ...]:
        """Return a relevance in [-1, 1] a passage; 0 where either side has no token."""
        if not passages:
            return ()
        texts = [query, *(indexed_text(passage) for passage in passages)]
        asked, *vectors = self._embedder.token_vectors(texts)
        return tuple(max_sim(asked, found) for found in vectors)


class CrossEncoderReranker:
    """Relevance as the probability that a sequence classifier gives a pair.

    ``off_topic`` is 0: classifiers are calibrated too differently for one number.

    Raises:
        ModelError: the model has three or more classes, so that none of them is "relevant".

    """

    off_topic = 0.0

    def __init__(self, classifier: PairClassifier, positive_class: int = 1) -> None:
        if not 1 <= classifier.num_classes <= MAX_CLASSES:
            raise ModelError(
                f"a reranker must have 1 or 2 classes, {classifier.name} has"
                f" {classifier.num_classes}: choose a model trained for ranking"
            )
        self._classifier = classifier
        self._positive_class = positive_class
        self.name = f"cross_encoder/{classifier.name}"

    def rerank(self, query: str, passages: Sequence[Passage]) -> tuple[float, ...]:
        """Return a probability of relevance a passage; the model is not called without any."""
        if not passages:
            return ()
        outputs = self._classifier.classify(query, [indexed_text(passage) for passage in passages])
        return relevance(outputs, self._classifier.score_kind, self._positive_class)


def max_sim(asked: NDArray[np.float32], found: NDArray[np.float32]) -> float:
    """Mean over rows of ``asked`` of the best cosine with a row of ``found``; rows are unit.

    *Shape:* ``[Q, D]`` and ``[T, D]``.
    """
    if not len(asked) or not len(found):
        return 0.0
    return float((asked @ found.T).max(axis=1).mean())


def relevance(
    outputs: NDArray[np.float32] | Sequence[float] | Sequence[Sequence[float]],
    score_kind: ScoreKind = "logits",
    positive_class: int = 1,
) -> tuple[float, ...]:
    """Turn a model's outputs into probabilities, once.

    One column of logits goes through the sigmoid, two through softmax, of which the positive class
    is taken; probabilities are taken as they are. *Shape:* ``[N]``, ``[N, 1]`` or ``[N, 2]``.

    Raises:
        ModelError: the shape is another, or there is no such class.

    """
    scores = np.asarray(outputs, dtype=np.float64)
    if scores.size == 0:
        return ()
    if scores.ndim == 1:
        scores = scores[:, np.newaxis]
    if scores.ndim != 2 or scores.shape[1] > MAX_CLASSES:
        raise ModelError(f"a reranker must give 1 or 2 scores a pair, was: shape {scores.shape}")
    if scores.shape[1] == 1:
        column = scores[:, 0]
        return tuple(_sigmoid(column).tolist() if score_kind == "logits" else column.tolist())
    if positive_class not in (0, 1):
        raise ModelError(f"positive class must be 0 or 1, was: {positive_class}")
    positive, negative = scores[:, positive_class], scores[:, 1 - positive_class]
    # Softmax over two classes is the sigmoid of their difference.
    return tuple(
        _sigmoid(positive - negative).tolist() if score_kind == "logits" else positive.tolist()
    )


def rank_by_relevance(scores: Sequence[float]) -> tuple[int, ...]:
    """Return positions, best score first, ties as they stood; NaN comes last."""

    def key(position: int) -> tuple[bool, float]:
        score = scores[position]
        return math.isnan(score), 0.0 if math.isnan(score) else -score

    return tuple(sorted(range(len(scores)), key=key))


def relevant(scores: Sequence[float], threshold: float) -> tuple[int, ...]:
    """Return positions whose score is at least ``threshold``, as they stood; NaN never is."""
    return tuple(position for position, score in enumerate(scores) if score >= threshold)


def _sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    # Through exp of negative numbers only, which cannot overflow.
    small = np.exp(-np.abs(logits))
    return np.asarray(np.where(logits >= 0, 1.0, small) / (1.0 + small), dtype=np.float64)
