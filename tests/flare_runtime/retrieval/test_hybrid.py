import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from flare_runtime.config import RetrievalConfig
from flare_runtime.errors import ConfigError, CorpusIndexError, ModelError
from flare_runtime.model_store import models_root
from flare_runtime.retrieval import ExpandingRetriever, Retriever
from flare_runtime.retrieval.analyzer import analyze_query
from flare_runtime.retrieval.corpus import indexed_text
from flare_runtime.retrieval.dense import DenseIndex
from flare_runtime.retrieval.embedder import load_embedder
from flare_runtime.retrieval.hybrid import HybridRetriever
from flare_runtime.retrieval.indexing import build_index
from flare_runtime.retrieval.manifest import Manifest
from flare_runtime.retrieval.rerank import LateInteractionReranker, Reranker
from flare_runtime.retrieval.search_index import SearchIndex, open_search_index
from flare_runtime.retrieval.sparse import SparseIndex
from flare_runtime.retrieval.storage import VECTORS_FILE, lock_index, publish
from flare_runtime.types import Passage

EMBEDDER = models_root() / "all-minilm-l6-v2"
PLAIN = RetrievalConfig(rerank="none")


class Letters:
    """Embeds a text as how often it has each letter."""

    name = "letters"
    dimension = 26
    max_tokens = 100

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += texts
        counts = [[text.lower().count(chr(97 + axis)) for axis in range(26)] for text in texts]
        vectors = np.array(counts, dtype=np.float32).reshape(len(texts), 26)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1.0)

    def token_vectors(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], ...]:
        return tuple(self.embed(text.split()) for text in texts)


class Scripted:
    """A reranker with a score for each text that keeps what it was given."""

    name = "scripted"
    off_topic = 0.0

    def __init__(self, **scores: float) -> None:
        self._scores = scores
        self.seen: list[str] = []

    def rerank(self, query: str, passages: Sequence[Passage]) -> tuple[float, ...]:
        self.seen = [passage.text for passage in passages]
        return tuple(self._scores.get(passage.text.split()[0], 0.0) for passage in passages)


class Writer:
    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)

    def write(self, instruction: str, max_tokens: int) -> str:
        return self._answers.pop(0)


def passages_of(texts: Sequence[str], sources: str = "") -> tuple[Passage, ...]:
    names = sources or [str(at) for at in range(len(texts))]
    return tuple(
        Passage(f"id-{at}", text, "", f"{name}.md", 0, len(text))
        for at, (text, name) in enumerate(zip(texts, names, strict=True))
    )


def retriever_of(
    passages: Sequence[Passage],
    config: RetrievalConfig = PLAIN,
    reranker: Reranker | None = None,
) -> HybridRetriever:
    texts = [indexed_text(passage) for passage in passages]
    index = SearchIndex(
        tuple(passages), DenseIndex.build(Letters().embed(texts)), SparseIndex.build(texts)
    )
    return HybridRetriever(index, Letters(), config, reranker)


TEXTS = ("pump priming", "pump colour", "valve seat", "door lock", "error reset")


def test_it_is_a_retriever_that_can_expand() -> None:
    retriever: Retriever = retriever_of(passages_of(TEXTS))
    assert isinstance(retriever, ExpandingRetriever)
    assert retriever.num_passages == 5
    assert retriever.is_remote is False


def test_hits_are_ranked_and_scored_by_rank_fusion() -> None:
    hits = retriever_of(passages_of(TEXTS)).search("pump priming", 2)
    assert [hit.passage.text for hit in hits] == ["pump priming", "pump colour"]
    assert [hit.rank for hit in hits] == [1, 2]
    assert hits[0].score == pytest.approx(2 / 61)


def test_order_equals_fusing_both_searches_by_hand() -> None:
    passages = passages_of([f"{a}{b} {b}{a}x {a}" for a in "pqrs" for b in "abcde"])
    config = replace(PLAIN, fused_k=20, dense_weight=0.7, sparse_weight=1.3, rrf_k=10, depth=8)
    texts = [indexed_text(passage) for passage in passages]
    query = "pa q rbb"
    vector = Letters().embed([query])[0]
    expected: dict[int, float] = {}
    for weight, found in (
        (0.7, DenseIndex.build(Letters().embed(texts)).search(vector, 20)[:20]),
        (1.3, SparseIndex.build(texts).search(query, 20)),
    ):
        for rank, (row, _) in enumerate(found, start=1):
            expected[row] = expected.get(row, 0.0) + weight / (10 + rank)
    hits = retriever_of(passages, config).search(query, 20)
    assert [hit.score for hit in hits] == pytest.approx(sorted(expected.values(), reverse=True))
    for hit in hits:
        assert hit.score == pytest.approx(expected[int(hit.passage.id.removeprefix("id-"))])


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
def test_blank_query_finds_nothing_and_embeds_nothing(query: str) -> None:
    embedder = Letters()
    index = SearchIndex(
        passages_of(TEXTS), DenseIndex.build(embedder.embed(TEXTS)), SparseIndex.build(TEXTS)
    )
    embedder.embedded.clear()
    retriever = HybridRetriever(index, embedder, PLAIN)
    assert retriever.search(query, 4) == ()
    assert embedder.embedded == []


def test_empty_index_finds_nothing() -> None:
    index = SearchIndex(
        (), DenseIndex.build(np.empty((0, 0), dtype=np.float32)), SparseIndex.build([])
    )
    retriever = HybridRetriever(index, Letters(), RetrievalConfig(), Scripted())
    assert retriever.num_passages == 0
    assert retriever.search("pump", 4) == ()


@pytest.mark.parametrize("top_k", [0, -1])
def test_top_k_below_one_is_refused(top_k: int) -> None:
    with pytest.raises(ConfigError, match=f"top_k must be at least 1, was: {top_k}"):
        retriever_of(passages_of(TEXTS)).search("pump", top_k)


def test_more_asked_for_than_there_is() -> None:
    hits = retriever_of(passages_of(TEXTS)).search("pump", 50)
    assert {hit.passage.text for hit in hits} == set(TEXTS)
    assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]


def test_reranker_sees_fused_k_candidates_and_decides_the_order() -> None:
    reranker = Scripted(pump=0.1, valve=0.9, door=0.5)
    config = RetrievalConfig(fused_k=5)
    hits = retriever_of(passages_of(TEXTS), config, reranker).search("pump priming", 3)
    assert len(reranker.seen) == 5
    assert [hit.passage.text for hit in hits] == ["valve seat", "door lock", "pump priming"]
    assert [hit.score for hit in hits] == [0.9, 0.5, 0.1]


def test_lookup_wider_than_fused_k_widens_it() -> None:
    reranker = Scripted()
    retriever = retriever_of(passages_of(TEXTS), RetrievalConfig(fused_k=2), reranker)
    retriever.search("pump", 1)
    assert len(reranker.seen) == 2
    assert len(retriever.search("pump", 4)) == 4


def test_equal_rerank_scores_keep_the_fused_order() -> None:
    plain = retriever_of(passages_of(TEXTS)).search("pump priming", 5)
    tied = retriever_of(passages_of(TEXTS), RetrievalConfig(), Scripted()).search("pump priming", 5)
    assert [hit.passage for hit in tied] == [hit.passage for hit in plain]


def test_unknown_relevance_comes_last() -> None:
    reranker = Scripted(pump=float("nan"), valve=-0.2)
    hits = retriever_of(passages_of(TEXTS), RetrievalConfig(), reranker).search("pump", 5)
    assert {hit.passage.text for hit in hits[-2:]} == {"pump colour", "pump priming"}
    assert hits[-3].passage.text == "valve seat"


def test_hits_below_min_relevance_are_no_evidence() -> None:
    reranker = Scripted(pump=0.5, valve=0.49, door=float("nan"), error=0.8)
    config = RetrievalConfig(min_relevance=0.5)
    hits = retriever_of(passages_of(TEXTS), config, reranker).search("pump", 5)
    assert {hit.passage.text for hit in hits} == {"error reset", "pump colour", "pump priming"}


def test_abst_003_004_the_reranker_knows_what_is_off_topic() -> None:
    """Unless a threshold is set, hits below the reranker's own are no evidence."""
    reranker = Scripted(pump=0.12, valve=0.05, door=0.1, error=0.8)
    reranker.off_topic = 0.35
    retriever = retriever_of(passages_of(TEXTS), RetrievalConfig(), reranker)
    assert [hit.passage.text for hit in retriever.search("pump", 5)] == ["error reset"]
    reranker = Scripted(pump=0.12, valve=0.05)
    reranker.off_topic = 0.35
    assert retriever_of(passages_of(TEXTS), RetrievalConfig(), reranker).search("pump", 5) == ()
    lenient = RetrievalConfig(min_relevance=0.0)
    assert len(retriever_of(passages_of(TEXTS), lenient, reranker).search("pump", 5)) == 5


def test_min_relevance_zero_lets_all_pass() -> None:
    reranker = Scripted(pump=-0.5, valve=float("nan"))
    assert len(retriever_of(passages_of(TEXTS), RetrievalConfig(), reranker).search("pump", 5)) == 5


def test_no_document_floods_the_candidates() -> None:
    passages = passages_of([f"pump {word}" for word in "abcdefgh"], sources="aaaaaabc")
    config = replace(PLAIN, fused_k=6, max_per_source=2)
    sources = [hit.passage.source for hit in retriever_of(passages, config).search("pump", 6)]
    assert sorted(sources) == ["a.md", "a.md", "b.md", "c.md"]


def test_a_wider_lookup_gets_the_same_share_of_one_document() -> None:
    passages = passages_of([f"pump {word}" for word in "abcdefghij"], sources="aaaaaaaabb")
    config = replace(PLAIN, fused_k=4, max_per_source=2)
    sources = [hit.passage.source for hit in retriever_of(passages, config).search("pump", 8)]
    assert sources.count("a.md") == 4


def test_index_of_one_document_has_no_limit() -> None:
    passages = passages_of([f"pump {word}" for word in "abcdef"], sources="aaaaaa")
    config = replace(PLAIN, max_per_source=1)
    assert len(retriever_of(passages, config).search("pump", 6)) == 6


def test_equal_texts_are_found_once() -> None:
    passages = passages_of(["Close valve  B.\n", "Close valve B.", "Open valve C."])
    hits = retriever_of(passages).search("close valve", 4)
    assert [hit.passage.id for hit in hits] == ["id-0", "id-2"]


def test_search_by_words_alone_embeds_nothing_and_finds_only_matches() -> None:
    embedder = Letters()
    index = SearchIndex(
        passages_of(TEXTS), DenseIndex.build(embedder.embed(TEXTS)), SparseIndex.build(TEXTS)
    )
    embedder.embedded.clear()
    retriever = HybridRetriever(index, embedder, replace(PLAIN, dense_weight=0.0))
    assert [hit.passage.text for hit in retriever.search("valve", 4)] == ["valve seat"]
    assert retriever.search("unknown", 4) == ()
    assert embedder.embedded == []


def test_search_by_meaning_alone() -> None:
    retriever = retriever_of(passages_of(TEXTS), replace(PLAIN, sparse_weight=0.0))
    explanation = retriever.explain("vlave sate", 1)
    assert explanation.hits[0].passage.text == "valve seat"
    assert [set(item.list_ranks) for item in explanation.candidates] == [{"dense"}] * 5


def test_two_searches_are_equal() -> None:
    retriever = retriever_of(passages_of(TEXTS))
    assert retriever.search("pump lock", 5) == retriever.search("pump lock", 5)


def test_title_is_searched_too() -> None:
    passages = (*passages_of(TEXTS), Passage("t", "press it", "Emergency stop", "s.md", 0, 8))
    assert retriever_of(passages).search("emergency stop", 1)[0].passage.id == "t"


def test_expansion_adds_lists_and_hypothetical_answer_is_not_matched_by_words() -> None:
    config = replace(PLAIN, paraphrases=1, hyde=True)
    plain = retriever_of(passages_of(TEXTS), config)
    assert plain.explain("lock", 1).queries[0].text == "lock"
    assert len(plain.explain("lock", 1).queries) == 1
    retriever = plain.with_writer(Writer("1. door", "error reset"))
    explanation = retriever.explain("lock", 5)
    assert [query.kind for query in explanation.queries] == [
        "original",
        "paraphrase",
        "hypothetical",
    ]
    lists = {name for item in explanation.candidates for name in item.list_ranks}
    assert lists == {
        "dense", "dense (door)", "dense (error reset)", "sparse", "sparse (door)",
    }  # fmt: skip
    assert explanation.hits[0].passage.text == "door lock"


def test_explanation_tells_every_rank() -> None:
    reranker = Scripted(valve=0.9, pump=0.6)
    config = RetrievalConfig(min_relevance=0.5)
    retriever = retriever_of(passages_of(TEXTS), config, reranker)
    explanation = retriever.explain("pump priming", 2)
    assert explanation.reranker == "scripted"
    assert explanation.hits == retriever_of(passages_of(TEXTS), config, reranker).search(
        "pump priming", 2
    )
    assert [item.rank for item in explanation.candidates] == [1, 2, None, None, None]
    second = explanation.candidates[1]
    assert second.passage.text == "pump priming"
    assert second.list_ranks == {"dense": 1, "sparse": 1}
    assert (second.fused_rank, second.rerank_score) == (1, 0.6)
    assert second.fused_score == pytest.approx(2 / 61)
    assert sorted(item.fused_rank for item in explanation.candidates) == [1, 2, 3, 4, 5]


def test_explanation_without_reranker() -> None:
    explanation = retriever_of(passages_of(TEXTS)).explain("pump", 2)
    assert explanation.reranker == "none"
    assert explanation.candidates[0].rerank_score is None
    assert explanation.hits[0].score == explanation.candidates[0].fused_score


def test_explanation_for_people_and_machines() -> None:
    passages = (Passage("t", "Press\nit " + "x" * 200, "Stop", "s.md", 0, 8, "lines 1-2"),)
    explanation = retriever_of(passages, RetrievalConfig(), Scripted()).explain("press", 2)
    assert explanation.hit_lines(20) == (
        "1. s.md · Stop · lines 1-2  0.0000",
        "   Press it xxxxxxxxxx…",
    )
    assert explanation.lines(20) == (
        "original: press",
        "reranker: scripted",
        "1. s.md · Stop · lines 1-2",
        "   dense 1, sparse 1; fused 1 (0.0328); rerank 0.0000",
        "   Press it xxxxxxxxxx…",
    )
    plain = retriever_of(passages).explain("press", 1)
    assert plain.lines(20)[3] == "   dense 1, sparse 1; fused 1 (0.0328)"
    record = json.loads(json.dumps(explanation.to_dict()))
    assert record["candidates"][0]["passage"]["id"] == "t"
    assert record["candidates"][0]["list_ranks"] == {"dense": 1, "sparse": 1}
    assert record["queries"] == [{"text": "press", "kind": "original"}]


def test_min_relevance_without_reranker_is_refused() -> None:
    with pytest.raises(ConfigError, match="min_relevance must be 0 when nothing reranks"):
        retriever_of(passages_of(TEXTS), replace(PLAIN, min_relevance=0.3))


def test_two_weights_of_zero_are_refused() -> None:
    with pytest.raises(ConfigError, match="both 0"):
        retriever_of(passages_of(TEXTS), replace(PLAIN, dense_weight=0.0, sparse_weight=0.0))


def test_embedder_of_another_dimension_is_refused() -> None:
    index = SearchIndex(
        passages_of(["pump"]),
        DenseIndex.build(np.ones((1, 3), dtype=np.float32)),
        SparseIndex.build(["pump"]),
    )
    with pytest.raises(CorpusIndexError, match="vectors of 3, letters makes 26"):
        HybridRetriever(index, Letters(), PLAIN)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "pump.md").write_text("# Pump\n\nFill the pump with water before starting it.\n")
    (docs / "error.md").write_text("# Errors\n\n## E-4013\n\nThe door is open. Close it.\n")
    build_index([docs], tmp_path / "index", Letters(), chunk_tokens=50)
    return tmp_path / "index"


def test_load_opens_what_indexing_wrote(index: Path) -> None:
    opened: list[str] = []

    def open_letters(name: str) -> Letters:
        opened.append(name)
        return Letters()

    retriever = HybridRetriever.load(str(index), open_embedder=open_letters)
    assert opened == ["letters"]
    assert retriever.num_passages == 2
    assert retriever.search("E-4013", 1)[0].passage.source.endswith("error.md")
    assert retriever.explain("pump", 1).reranker == "late_interaction/letters"


def test_load_without_reranker_and_with_cross_encoder(index: Path) -> None:
    class Constant:
        name = "constant"
        num_classes = 1
        score_kind = "probabilities"

        def classify(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
            overlap = [len(set(analyze_query(query)) & set(analyze_query(text))) for text in texts]
            return np.array(overlap, dtype=np.float32).reshape(-1, 1) / 10

    plain = HybridRetriever.load(index, PLAIN, lambda name: Letters())
    assert plain.explain("pump", 1).reranker == "none"
    config = RetrievalConfig(rerank="cross_encoder", rerank_model="constant")
    crossed = HybridRetriever.load(index, config, lambda name: Letters(), lambda name: Constant())
    explanation = crossed.explain("the door", 1)
    assert explanation.reranker == "cross_encoder/constant"
    assert explanation.hits[0].score == pytest.approx(0.2)


def test_cross_encoder_without_a_model_is_refused(index: Path) -> None:
    config = RetrievalConfig(rerank="cross_encoder")
    with pytest.raises(ConfigError, match="needs rerank_model"):
        HybridRetriever.load(index, config, lambda name: Letters())


def test_missing_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusIndexError, match="no index at"):
        open_search_index(tmp_path / "nowhere")


def test_files_that_do_not_belong_together_are_refused(index: Path) -> None:
    def fill(folder: Path) -> Manifest:
        (folder / "passages.jsonl").write_text("")
        np.save(folder / VECTORS_FILE, np.ones((2, 3), dtype=np.float32))
        SparseIndex.build(["pump"]).save(folder)
        return Manifest("letters", 3, 50, 1)

    with lock_index(index):
        publish(index, fill)
    with pytest.raises(CorpusIndexError, match="0 passages, 2 vectors and 1 word entries"):
        open_search_index(index)


def test_unreadable_vectors_are_refused(index: Path) -> None:
    def fill(folder: Path) -> Manifest:
        (folder / "passages.jsonl").write_text("")
        (folder / VECTORS_FILE).write_bytes(b"no array")
        return Manifest("letters", 3, 50, 1)

    with lock_index(index):
        publish(index, fill)
    with pytest.raises(CorpusIndexError, match="cannot read"):
        open_search_index(index)


@pytest.mark.real_model
def test_real_pipeline_finds_by_meaning_and_by_code() -> None:
    embedder = load_embedder(EMBEDDER, "minilm")
    passages = passages_of(
        [
            "To prime the pump, fill its housing with water.",
            "Error E-4013: the door is open.",
            "Error E-4012: the motor has stalled.",
            "The cafeteria opens at nine.",
        ]
    )
    texts = [indexed_text(passage) for passage in passages]
    retriever = HybridRetriever(
        SearchIndex(passages, DenseIndex.build(embedder.embed(texts)), SparseIndex.build(texts)),
        embedder,
        RetrievalConfig(),
        LateInteractionReranker(embedder),
    )
    assert retriever.search("What does E-4013 mean?", 1)[0].passage.id == "id-1"
    assert retriever.search("preparing a water pump for its first start", 1)[0].passage.id == "id-0"
    assert retriever.search("when can I have lunch", 1)[0].passage.id == "id-3"


@pytest.mark.real_model
def test_models_are_opened_by_name_or_folder(tmp_path: Path) -> None:
    embedder = load_embedder(EMBEDDER, str(EMBEDDER))
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "pump.txt").write_text("Fill the pump with water before starting it.")
    build_index([docs], tmp_path / "index", embedder, chunk_tokens=50)
    retriever = HybridRetriever.load(tmp_path / "index")
    assert retriever.search("priming a pump", 1)[0].passage.source.endswith("pump.txt")
    # The embedder is no cross-encoder, which its opener finds out.
    config = RetrievalConfig(rerank="cross_encoder", rerank_model=str(EMBEDDER))
    with pytest.raises(ModelError, match="weights lack classifier"):
        HybridRetriever.load(tmp_path / "index", config)
