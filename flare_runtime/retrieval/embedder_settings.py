"""What a sentence encoder's folder says about pooling, length and padding."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from flare_runtime.errors import ModelError
from flare_runtime.model_store import read_json

Pooling = Literal["mean", "first"]

LIMITS = {
    "sentence_bert_config.json": "max_seq_length",
    "config.json": "max_position_embeddings",
    "tokenizer_config.json": "model_max_length",
}
"""Files that may limit a text's tokens, special ones included, and the setting in each."""

NO_LIMIT = 10**6
"""Tokenizers without a limit of their own state one with thirty digits."""


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """How texts become batches, and states become vectors.

    ``max_length`` counts special tokens; ``pad_id`` fills what a batch's shorter texts leave.
    """

    pooling: Pooling
    max_length: int
    pad_id: int


def read_embedder_settings(folder: Path, remedy: str) -> EmbedderSettings:
    """Read the sentence-transformers files, if any, else mean pooling and the model's own limit.

    Raises:
        ModelError: a file is damaged, no file limits the length, or vectors are pooled in a way
            that is not supported.

    """
    pad_id = read_json(folder / "config.json", remedy).get("pad_token_id")
    return EmbedderSettings(
        _read_pooling(folder, remedy),
        _read_max_length(folder, remedy),
        pad_id if isinstance(pad_id, int) and pad_id > 0 else 0,
    )


def _read_pooling(folder: Path, remedy: str) -> Pooling:
    settings = read_json(folder / "1_Pooling" / "config.json", remedy)
    modes = {key for key, on in settings.items() if key.startswith("pooling_mode_") and on is True}
    if modes <= {"pooling_mode_mean_tokens"}:
        return "mean"
    if modes == {"pooling_mode_cls_token"}:
        return "first"
    raise ModelError(f"embedder must pool by mean or first token, was: {', '.join(sorted(modes))}")


def _read_max_length(folder: Path, remedy: str) -> int:
    """Return the smallest limit that is given."""
    given = [read_json(folder / file, remedy).get(key) for file, key in LIMITS.items()]
    limits = [int(limit) for limit in given if isinstance(limit, int | float) and limit > 0]
    if not limits or min(limits) > NO_LIMIT:
        raise ModelError(
            f"the embedder in {folder} does not say how long a text may be; "
            'write {"max_seq_length": …} into its sentence_bert_config.json'
        )
    return min(limits)
