"""Cases of the components ``bm25`` and ``rerank`` through the public search functions."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flare_runtime.errors import FlareError
from flare_runtime.retrieval.rerank import (
    CrossEncoderReranker,
    ScoreKind,
    rank_by_relevance,
    relevant,
)
from flare_runtime.retrieval.sparse import SparseIndex
from flare_runtime.types import Passage


class GivenOutputs:
    """A classifier that returns a case's outputs and remembers that it was called."""

    name = "case"

    def __init__(self, outputs: NDArray[np.float64], score_kind: ScoreKind) -> None:
        self.num_classes = outputs.shape[1]
        self.score_kind = score_kind
        self.called = False
        self._outputs = outputs

    def classify(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        self.called = True
        return self._outputs


def run_bm25(case_input: dict) -> dict:
    """Index, search, name the hits; ``first_only`` asks for the best alone."""
    docs = case_input.get("docs", [])
    try:
        found = SparseIndex.build(docs).search(
            case_input["query"], case_input.get("k", max(1, len(docs)))
        )
    except FlareError as error:
        return {"raises": True, "message": str(error)}
    hits = [position for position, _ in found]
    return {
        "positive_hits_in_order": hits[:1] if case_input.get("first_only") else hits,
        "scores": [score for _, score in found],
        "raises": False,
    }


def run_rerank(case_input: dict) -> dict:
    """Rerank as many passages as the case has outputs."""
    outputs, score_kind = _outputs(case_input)
    try:
        model = GivenOutputs(outputs, score_kind)
        passages = [Passage(str(at), "", "", "", 0, 0) for at in range(len(outputs))]
        reranker = CrossEncoderReranker(model, case_input.get("positive_class", 1))
        scores = reranker.rerank("query", passages)
    except FlareError as error:
        return {"raises": True, "refused": True, "message": str(error)}
    return {
        "probs": list(scores),
        "order": list(rank_by_relevance(scores)),
        "kept": list(relevant(scores, case_input.get("threshold", 0.0))),
        "model_called": model.called,
        "raises": False,
        "refused": False,
    }


def _outputs(case_input: dict) -> tuple[NDArray[np.float64], ScoreKind]:
    """One row a pair; "nan" and "-inf" come as strings."""
    kinds: tuple[tuple[str, ScoreKind], ...] = (
        ("scores_already_prob", "probabilities"),
        ("logits", "logits"),
        ("outputs", "logits"),
        ("scores", "probabilities"),
    )
    for key, kind in kinds:
        if key in case_input:
            rows = np.array(case_input[key], dtype=object).astype(np.float64)
            return rows.reshape(len(rows), -1) if rows.size else np.empty((0, 1)), kind
    raise KeyError(f"no outputs in {sorted(case_input)}")
