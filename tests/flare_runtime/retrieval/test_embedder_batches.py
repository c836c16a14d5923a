"""What reaches an engine: an engine that only takes notes stands in for the network."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from flare_runtime.model_store import models_root
from flare_runtime.retrieval.embedder_settings import EmbedderSettings
from flare_runtime.retrieval.sentence_encoder import (
    MAX_BATCH_TOKENS,
    SentenceEncoder,
    load_tokenizer,
)
from flare_runtime.token_text import encodable

FOLDER = models_root() / "all-minilm-l6-v2"
PAD = 7
GALLERY = (
    "",
    " \t\r\n",
    "ポンプを交換する",
    "漢字 mixed with text，全角",
    "한국어 조사 ﬁ ½ Å é e\u0301",
    "😀 👩\u200d👩\u200d👧 🏴\U000e0067\U000e007f",
    "\x00\x01\x07bell\x7f \u200b\u00ad\ufeff",
    "עברית العربية हिन्दी",
    "\ue000 \U0010ffff \ufffd",
    "half \ud83d an emoji",
    "[CLS] of [SEP] a [MASK] text [PAD]",
    "x" * 99 + " " + "y" * 100 + " " + "z" * 101,
    "valve " * 3000,
    "Ünïcödé İstanbul ẞ",
    "a.b/c-d_e@f.g::h->i",
)

pytestmark = pytest.mark.real_model


class NotedEngine:
    """Keeps each batch; a state is 1 everywhere."""

    dimension = 3

    def __init__(self) -> None:
        self.batches: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    def states(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        self.batches.append((ids, mask))
        return np.ones((*ids.shape, self.dimension), dtype=np.float32)


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(FOLDER / "tokenizer.json", "pull it")


@pytest.fixture(scope="module")
def reference():
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)


def encode(tokenizer, text: str) -> tuple[list[int], SentenceEncoder]:
    engine = NotedEngine()
    encoder = SentenceEncoder("noted", engine, tokenizer, EmbedderSettings("mean", 256, PAD))
    encoder.embed([text])
    ((ids, mask),) = engine.batches
    assert mask.all()
    return ids[0].tolist(), encoder


@given(text=st.text(max_size=400))
@example(text="\x85\u2028 ")
def test_any_text_has_the_tokens_of_auto_tokenizer(tokenizer, reference, text: str) -> None:
    check_tokens(tokenizer, reference, text)


@pytest.mark.parametrize("text", GALLERY)
def test_odd_texts_have_the_tokens_of_auto_tokenizer(tokenizer, reference, text: str) -> None:
    check_tokens(tokenizer, reference, text)


def check_tokens(tokenizer, reference, text: str) -> None:
    theirs = reference(
        encodable(text), truncation=True, max_length=256, return_special_tokens_mask=True
    )
    ids, encoder = encode(tokenizer, text)
    assert ids == theirs["input_ids"]
    (vectors,) = encoder.token_vectors([text])
    assert len(vectors) == theirs["special_tokens_mask"].count(0)
    whole = reference(encodable(text), add_special_tokens=False, verbose=False)["input_ids"]
    assert encoder.count_tokens(text) == len(whole)


def test_a_batch_is_padded_on_the_right_to_its_longest_text(tokenizer) -> None:
    engine = NotedEngine()
    encoder = SentenceEncoder("noted", engine, tokenizer, EmbedderSettings("mean", 256, PAD))
    encoder.embed(["valve valve", "", "valve"])
    ((ids, mask),) = engine.batches
    assert mask.tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert (ids[mask == 0] == PAD).all()
    assert (ids[mask == 1] != PAD).all()
    assert ids.dtype == mask.dtype == np.int64


@given(lengths=st.lists(st.integers(0, 300), max_size=60))
@example(lengths=[254] * 9)
@example(lengths=[number * 37 % 100 for number in range(70)])
def test_texts_of_like_length_share_a_batch(tokenizer, lengths: list[int]) -> None:
    engine = NotedEngine()
    encoder = SentenceEncoder("noted", engine, tokenizer, EmbedderSettings("mean", 256, PAD))
    vectors = encoder.token_vectors(["valve " * length for length in lengths])
    cut = [min(length, 254) for length in lengths]
    assert [len(tokens) for tokens in vectors] == cut
    found = [int(total) for _, mask in engine.batches for total in mask.sum(axis=1)]
    assert found == sorted(length + 2 for length in cut)
    assert all(ids.shape[1] == mask.sum(axis=1).max() for ids, mask in engine.batches)
    assert all(ids.size <= MAX_BATCH_TOKENS for ids, _ in engine.batches)
    # No batch could have taken the next one's shortest text as well.
    for (ids, _), (_, after) in pairwise(engine.batches):
        assert (len(ids) + 1) * after.sum(axis=1).min() > MAX_BATCH_TOKENS


def test_a_text_longer_than_a_batch_runs_alone(tokenizer) -> None:
    engine = NotedEngine()
    settings = EmbedderSettings("mean", 2 * MAX_BATCH_TOKENS, PAD)
    encoder = SentenceEncoder("noted", engine, tokenizer, settings)
    encoder.embed(["valve " * 1500, "valve", "valve " * 1500])
    assert [ids.shape for ids, _ in engine.batches] == [(1, 3), (1, 1502), (1, 1502)]
