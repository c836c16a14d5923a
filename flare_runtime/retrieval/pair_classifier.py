"""Cross-encoders from a folder: any sequence-classification model of the Hugging Face kind."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from flare_runtime.errors import ModelError
from flare_runtime.quiet import silence_transformers
from flare_runtime.retrieval.model_folder import require_model_files
from flare_runtime.retrieval.rerank import ScoreKind

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

BATCH_SIZE = 16


class TransformersPairClassifier:
    """A sequence-classification model in fp32; of a pair too long the longer text is cut."""

    def __init__(
        self,
        name: str,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        score_kind: ScoreKind,
    ) -> None:
        self.name = name
        self.score_kind = score_kind
        self.num_classes = int(model.config.num_labels)
        self._model = model
        self._tokenizer = tokenizer
        positions = getattr(model.config, "max_position_embeddings", None)
        limits = (positions, tokenizer.model_max_length)
        self._max_length = min(int(limit) for limit in limits if limit)

    def classify(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return raw outputs of each pair. *Shape:* ``[N, num_classes]``."""
        import torch

        outputs = np.zeros((len(texts), self.num_classes), dtype=np.float32)
        for start in range(0, len(texts), BATCH_SIZE):
            batch = list(texts[start : start + BATCH_SIZE])
            encoded = self._tokenizer(
                [query] * len(batch),
                batch,
                truncation="longest_first",
                max_length=self._max_length,
                padding=True,
                return_tensors="pt",
            )
            with torch.inference_mode():
                outputs[start : start + len(batch)] = self._model(**encoded).logits.numpy()
        return outputs


def load_pair_classifier(
    folder: Path, name: str, score_kind: ScoreKind = "logits"
) -> TransformersPairClassifier:
    """Load a cross-encoder from ``folder``; nothing is fetched.

    Raises:
        ModelError: the folder is missing, incomplete or no trained sequence classifier.

    """
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    require_model_files(folder, "reranker")
    silence_transformers()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model, report = AutoModelForSequenceClassification.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ModelError(f"cannot load the reranker in {folder}: {error}") from error
    if missing := sorted(report["missing_keys"]):
        raise ModelError(
            f"the model in {folder} is no reranker, its weights lack {missing[0]}:"
            " choose a model trained for ranking"
        )
    if tokenizer.pad_token is None:
        raise ModelError(f"the reranker in {folder} has no padding token: choose another model")
    return TransformersPairClassifier(name, model.eval(), tokenizer, score_kind)
