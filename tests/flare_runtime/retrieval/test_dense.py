from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from flare_runtime.errors import CorpusIndexError
from flare_runtime.retrieval.dense import GRAPH_FILE, DenseIndex


def rows_of(found: tuple[tuple[int, float], ...]) -> list[int]:
    return [row for row, _ in found]


def matrix(values: list[list[float]]) -> NDArray[np.float32]:
    return np.array(values, dtype=np.float32).reshape(len(values), -1)


def clustered(num_vectors: int, seed: int = 0) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((40, 32))
    points = centres[rng.integers(40, size=num_vectors)] + rng.standard_normal((num_vectors, 32))
    return points.astype(np.float32)


def brute_force(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1) * np.linalg.norm(query)
    return vectors.astype(np.float64) @ query.astype(np.float64) / lengths


def test_dense_001_more_asked_for_than_there_is() -> None:
    index = DenseIndex.build(matrix([[1, 0], [0, 1], [-1, 0]]))
    found = index.search(np.array([1, 0], dtype=np.float32), 5)
    assert found == ((0, 1.0), (1, 0.0), (2, -1.0))


def test_dense_002_empty_index_finds_nothing() -> None:
    for empty in (np.empty((0, 2), dtype=np.float32), np.empty((0, 0), dtype=np.float32)):
        index = DenseIndex.build(empty)
        assert index.num_vectors == 0
        assert index.search(np.array([1, 0], dtype=np.float32), 1) == ()


def test_dense_004_score_is_cosine_from_squared_distance() -> None:
    vectors = matrix([[1, 0], [0, 1], [-1, 0]])
    query = vectors[0]
    scores = dict(DenseIndex.build(vectors).search(query, 3))
    squared = [float(((vector - query) ** 2).sum()) for vector in vectors]
    assert squared == [0.0, 2.0, 4.0]
    assert [scores[row] for row in range(3)] == pytest.approx([1.0, 0.0, -1.0], abs=1e-6)
    assert [scores[row] for row in range(3)] == pytest.approx([1 - d / 2 for d in squared])


def test_dense_005_length_of_vectors_does_not_count() -> None:
    index = DenseIndex.build(matrix([[10, 0], [0.6, 0.8]]))
    assert rows_of(index.search(np.array([0.5, 0.8660254], dtype=np.float32), 2)) == [1, 0]


@given(seed=st.integers(0, 10_000), num=st.integers(1, 40), k=st.integers(1, 50))
@settings(max_examples=40, deadline=None)
def test_flat_equals_brute_force(seed: int, num: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = (rng.standard_normal((num, 6)) * rng.uniform(0.1, 20)).astype(np.float32)
    query = rng.standard_normal(6).astype(np.float32)
    found = DenseIndex.build(vectors).search(query, k)
    cosines = brute_force(vectors, query)
    assert len(found) == min(k, num)
    assert [score for _, score in found] == pytest.approx(
        sorted(cosines, reverse=True)[:k], abs=1e-5
    )
    for row, score in found:
        assert score == pytest.approx(cosines[row], abs=1e-5)


def test_ties_by_row() -> None:
    index = DenseIndex.build(matrix([[0, 1], [1, 1], [1, 1], [1, 1]]))
    assert rows_of(index.search(np.array([1, 1], dtype=np.float32), 4)) == [1, 2, 3, 0]


def test_zero_vectors_are_at_right_angles_to_everything() -> None:
    index = DenseIndex.build(matrix([[0, 0], [1, 0]]))
    assert index.search(np.array([2, 0], dtype=np.float32), 2) == ((1, 1.0), (0, 0.0))
    assert index.search(np.zeros(2, dtype=np.float32), 2) == ((0, 0.0), (1, 0.0))


def test_nothing_asked_for() -> None:
    assert DenseIndex.build(matrix([[1, 0]])).search(np.array([1, 0], dtype=np.float32), 0) == ()


def test_vectors_of_the_caller_stay_as_they_are() -> None:
    vectors = matrix([[3, 4]])
    DenseIndex.build(vectors).search(vectors[0], 1)
    assert vectors.tolist() == [[3, 4]]


@pytest.fixture(scope="module")
def graph() -> DenseIndex:
    return DenseIndex.build(clustered(2000), flat_limit=1000)


def test_graph_recalls_what_brute_force_finds(graph: DenseIndex) -> None:
    vectors = clustered(2000)
    recalls = []
    for query in clustered(50, seed=1):
        truth = np.argsort(-brute_force(vectors, query))[:10]
        recalls.append(len(set(truth.tolist()) & set(rows_of(graph.search(query, 10)))) / 10)
    assert np.mean(recalls) >= 0.97


def test_graph_scores_are_cosines_and_never_of_row_minus_one(graph: DenseIndex) -> None:
    query = clustered(1, seed=2)[0]
    cosines = brute_force(clustered(2000), query)
    found = graph.search(query, 5000)
    assert 0 < len(found) <= 2000
    for row, score in found:
        assert row >= 0
        assert score == pytest.approx(cosines[row], abs=1e-5)


def test_graph_is_the_same_every_time(tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        DenseIndex.build(clustered(300), flat_limit=10).save(tmp_path / name)
        contents.append((tmp_path / name / GRAPH_FILE).read_bytes())
    assert contents[0] == contents[1]


def test_graph_survives_saving(graph: DenseIndex, tmp_path: Path) -> None:
    graph.save(tmp_path)
    loaded = DenseIndex.load(tmp_path, clustered(2000))
    assert loaded.num_vectors == 2000
    assert loaded.dimension == 32
    for query in clustered(10, seed=3):
        assert loaded.search(query, 10) == graph.search(query, 10)


def test_flat_needs_no_file(tmp_path: Path) -> None:
    vectors = clustered(50)
    built = DenseIndex.build(vectors)
    built.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
    np.save(tmp_path / "vectors.npy", vectors)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    assert DenseIndex.load(tmp_path, mapped).search(vectors[7], 5) == built.search(vectors[7], 5)


def test_damaged_graph_is_refused(tmp_path: Path) -> None:
    (tmp_path / GRAPH_FILE).write_bytes(b"no graph")
    with pytest.raises(CorpusIndexError, match="build the index again"):
        DenseIndex.load(tmp_path, clustered(5))


def test_graph_of_other_vectors_is_refused(graph: DenseIndex, tmp_path: Path) -> None:
    graph.save(tmp_path)
    with pytest.raises(CorpusIndexError, match="2000 vectors of 32"):
        DenseIndex.load(tmp_path, clustered(1999))


def test_query_of_another_length_is_refused() -> None:
    with pytest.raises(CorpusIndexError, match="vectors of 2, the query 3"):
        DenseIndex.build(matrix([[1, 0]])).search(np.ones(3, dtype=np.float32), 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(CorpusIndexError, match="finite"):
        DenseIndex.build(matrix([[1, bad]]))
    with pytest.raises(CorpusIndexError, match="finite"):
        DenseIndex.build(matrix([[1, 0]])).search(np.array([bad, 0], dtype=np.float32), 1)


def test_vectors_must_form_a_matrix() -> None:
    with pytest.raises(CorpusIndexError, match="matrix"):
        DenseIndex.build(np.ones(3, dtype=np.float32))
