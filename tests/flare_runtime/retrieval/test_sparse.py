import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flare_runtime.errors import CorpusIndexError
from flare_runtime.retrieval.sparse import (
    VOCABULARY_FILE,
    WEIGHTS_FILE,
    SparseIndex,
    _PositiveIdfBM25,
)

WORDS = st.sampled_from(["pump", "valve", "filter", "door", "error", "reset"])
TEXTS = st.lists(st.lists(WORDS, max_size=8).map(" ".join), min_size=1, max_size=12)
QUERY = st.lists(st.one_of(WORDS, st.just("unknown")), max_size=6).map(" ".join)


def formula(texts: list[str], query: str) -> list[float]:
    """BM25 as it is printed, k1 = 1.5 and b = .75."""
    passages = [Counter(text.split()) for text in texts]
    mean_length = sum(passage.total() for passage in passages) / len(passages)
    scores = []
    for passage in passages:
        score = 0.0
        for term in query.split():
            n = sum(term in other for other in passages)
            idf = math.log(1 + (len(passages) - n + 0.5) / (n + 0.5))
            tf = passage[term]
            if tf:
                norm = 1 - 0.75 + 0.75 * passage.total() / mean_length
                score += idf * tf * 2.5 / (tf + 1.5 * norm)
        scores.append(score)
    return scores


@given(texts=TEXTS, query=QUERY)
@settings(max_examples=60, deadline=None)
def test_scores_equal_rank_bm25_and_the_formula(texts: list[str], query: str) -> None:
    scores = SparseIndex.build(texts).scores(query)
    np.testing.assert_allclose(scores, formula(texts, query), atol=1e-6)
    if any(texts):
        oracle = _PositiveIdfBM25([text.split() for text in texts])
        np.testing.assert_allclose(scores, oracle.get_scores(query.split()), atol=1e-6)


@given(texts=TEXTS, query=QUERY, k=st.integers(0, 15))
@settings(max_examples=60, deadline=None)
def test_search_equals_sorting_everything(texts: list[str], query: str, k: int) -> None:
    index = SparseIndex.build(texts)
    scores = index.scores(query)
    ranked = sorted(range(len(texts)), key=lambda position: (-scores[position], position))
    expected = [position for position in ranked if scores[position] > 0][:k]
    found = index.search(query, k)
    assert [position for position, _ in found] == expected
    assert [score for _, score in found] == [scores[position] for position in expected]


def test_repeated_query_term_counts_twice() -> None:
    index = SparseIndex.build(["pump valve", "valve"])
    np.testing.assert_allclose(index.scores("valve valve"), 2 * index.scores("valve"))


def test_common_term_still_scores_above_zero() -> None:
    index = SparseIndex.build(["pump"] * 10)
    assert [position for position, _ in index.search("pump", 3)] == [0, 1, 2]
    assert all(score > 0 for _, score in index.search("pump", 3))


@pytest.mark.parametrize("texts", [[], [""], ["", "…", "   "]])
def test_corpus_without_words(texts: list[str], tmp_path: Path) -> None:
    built = SparseIndex.build(texts)
    built.save(tmp_path)
    for index in (built, SparseIndex.load(tmp_path)):
        assert index.num_passages == len(texts)
        assert index.search("pump", 5) == ()


def test_empty_passage_among_others_is_never_found() -> None:
    index = SparseIndex.build(["", "pump", ""])
    assert [position for position, _ in index.search("pump", 5)] == [1]


@pytest.mark.parametrize("query", ["", "  ", "…", "unknown"])
def test_query_without_known_words_finds_nothing(query: str) -> None:
    assert SparseIndex.build(["pump", "valve"]).search(query, 5) == ()


def test_texts_may_come_one_by_one() -> None:
    assert SparseIndex.build(text for text in ("pump", "valve")).num_passages == 2


def test_index_survives_saving(tmp_path: Path) -> None:
    texts = ["Error E-4013: door open", "ポンプを交換する", "", "Replace the filter. Filter!"]
    built = SparseIndex.build(texts)
    built.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [WEIGHTS_FILE, VOCABULARY_FILE]
    loaded = SparseIndex.load(tmp_path)
    for query in ("E-4013", "ポンプ", "filter", "the door"):
        assert loaded.search(query, 4) == built.search(query, 4) != ()


def test_equal_texts_make_equal_files(tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        SparseIndex.build(["pump valve", "door"]).save(tmp_path / name)
        contents.append((tmp_path / name / VOCABULARY_FILE).read_bytes())
        with np.load(tmp_path / name / WEIGHTS_FILE) as arrays:
            contents[-1] += b"".join(arrays[key].tobytes() for key in sorted(arrays.files))
    assert contents[0] == contents[1]


def save_small(folder: Path) -> None:
    SparseIndex.build(["pump valve", "door"]).save(folder)


@pytest.mark.parametrize("file", [WEIGHTS_FILE, VOCABULARY_FILE])
def test_missing_file_is_refused(tmp_path: Path, file: str) -> None:
    save_small(tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(CorpusIndexError, match="build the index again"):
        SparseIndex.load(tmp_path)


@pytest.mark.parametrize("file", [WEIGHTS_FILE, VOCABULARY_FILE])
@pytest.mark.parametrize("share", [0, 0.5])
def test_truncated_file_is_refused(tmp_path: Path, file: str, share: float) -> None:
    save_small(tmp_path)
    content = (tmp_path / file).read_bytes()
    (tmp_path / file).write_bytes(content[: int(len(content) * share)])
    with pytest.raises(CorpusIndexError, match="build the index again"):
        SparseIndex.load(tmp_path)


def test_vocabulary_of_another_index_is_refused(tmp_path: Path) -> None:
    save_small(tmp_path)
    (tmp_path / VOCABULARY_FILE).write_text(json.dumps(["pump"]))
    with pytest.raises(CorpusIndexError, match="1 terms and 3 rows"):
        SparseIndex.load(tmp_path)


def test_pickled_objects_are_not_read(tmp_path: Path) -> None:
    save_small(tmp_path)
    np.savez(tmp_path / WEIGHTS_FILE, format=np.array({"a": 1}, dtype=object))
    with pytest.raises(CorpusIndexError, match="build the index again"):
        SparseIndex.load(tmp_path)
