import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from flare_runtime.errors import ConfigError, CorpusIndexError
from flare_runtime.retrieval.corpus import indexed_text, read_passages
from flare_runtime.retrieval.dense import DenseIndex
from flare_runtime.retrieval.documents import DocumentFile, Skipped
from flare_runtime.retrieval.embedding_cache import EmbeddingCache
from flare_runtime.retrieval.former_index import NOTHING_FORMER
from flare_runtime.retrieval.indexing import build_index
from flare_runtime.retrieval.ingestion import ingest
from flare_runtime.retrieval.search_index import open_search_index
from flare_runtime.retrieval.sparse import SparseIndex
from flare_runtime.retrieval.storage import is_live, open_generation


class HashEmbedder:
    """A unit vector drawn from a text's hash; counts what it is asked to embed."""

    dimension = 8
    max_tokens = 256

    def __init__(self, name: str = "hash", fail_after: int = 10**9) -> None:
        self.name = name
        self.embedded: list[str] = []
        self._fail_after = fail_after

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        if len(self.embedded) + len(texts) > self._fail_after:
            raise RuntimeError("out of memory")
        self.embedded += texts
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text: str) -> np.ndarray:
        digest = hashlib.sha256(text.encode()).digest()
        vector = np.frombuffer(digest, dtype=np.uint8)[: self.dimension].astype(np.float32) - 128
        return vector / np.linalg.norm(vector)

    def token_vectors(self, texts: Sequence[str]) -> tuple[np.ndarray, ...]:
        raise NotImplementedError


class Opened:
    """An index as a reader finds it."""

    def __init__(self, index: Path) -> None:
        generation = open_generation(index)
        self.manifest = generation.manifest
        self.passages = read_passages(generation.folder / "passages.jsonl")
        self.vectors = np.load(generation.folder / "vectors.npy")
        self.dense = DenseIndex.load(generation.folder, self.vectors)
        self.sparse = SparseIndex.load(generation.folder)

    @property
    def texts(self) -> list[str]:
        return [passage.text for passage in self.passages]

    def check(self) -> None:
        """Everything in the index speaks of the same passages, in the same order."""
        texts = [indexed_text(passage) for passage in self.passages]
        expected = np.stack([HashEmbedder().vector(text) for text in texts])
        np.testing.assert_array_equal(self.vectors, expected)
        assert self.dense.num_vectors == self.sparse.num_passages == len(texts)
        ids = [i for record in self.manifest.files.values() for i in record.passage_ids]
        assert ids == [passage.id for passage in self.passages]


def write(folder: Path, **files: str | bytes) -> None:
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        path = folder / name.replace("_", ".")
        path.write_bytes(data if isinstance(data, bytes) else data.encode())


@pytest.fixture
def docs(tmp_path):
    write(tmp_path / "docs", a_md="# A\nalpha\n## B\nbeta", b_txt="gamma", c_py="print")
    return tmp_path / "docs"


@pytest.fixture
def index(tmp_path):
    return tmp_path / "index"


def run(docs, index, embedder=None, **options):
    embedder = embedder or HashEmbedder()
    folders = docs if isinstance(docs, list) else [docs]
    report = build_index(folders, index, embedder, chunk_tokens=16, **options)
    assert report.num_embedded == len(embedder.embedded)
    return report


def test_documents_become_an_index(docs, index):
    report = run(docs, index)
    assert (report.num_files, report.num_reused, report.num_passages) == (2, 0, 3)
    assert (report.num_embedded, report.changed, report.warnings) == (3, True, ())
    assert report.skipped == (Skipped("c.py", "not a document: .py"),)
    opened = Opened(index)
    opened.check()
    assert opened.texts == ["alpha", "beta", "gamma"]
    assert opened.manifest.skipped == report.skipped
    assert (opened.manifest.embedder, opened.manifest.chunk_tokens) == ("hash", 16)


def test_nothing_is_written_when_nothing_changed(docs, index):
    run(docs, index)
    before = open_generation(index)
    report = run(docs, index)
    assert (report.changed, report.num_reused, report.num_embedded) == (False, 2, 0)
    assert report.num_passages == 3
    assert open_generation(index) == before


def test_only_what_is_new_is_read_and_embedded(docs, index):
    run(docs, index)
    write(docs, b_txt="delta", d_txt="epsilon")
    report = run(docs, index)
    assert (report.num_files, report.num_reused, report.num_embedded) == (3, 1, 2)
    opened = Opened(index)
    opened.check()
    assert opened.texts == ["alpha", "beta", "delta", "epsilon"]


def test_an_edited_file_keeps_the_vectors_of_passages_that_stayed(docs, index):
    run(docs, index)
    write(docs, a_md="# A\nalpha\n## B\nchanged")
    embedder = HashEmbedder()
    run(docs, index, embedder)
    assert embedder.embedded == ["A > B\nchanged"]
    Opened(index).check()


def test_deleted_files_go(docs, index):
    run(docs, index)
    (docs / "a.md").unlink()
    report = run(docs, index)
    assert (report.changed, report.num_passages, report.num_embedded) == (True, 1, 0)
    Opened(index).check()


def test_a_second_run_does_not_double_passages_ingest_026(tmp_path, index):
    write(tmp_path / "docs", a_md="one. two.")
    run(tmp_path / "docs", index)
    first = Opened(index)
    assert run(tmp_path / "docs", index).num_passages == len(first.passages)
    assert Opened(index).passages == first.passages


def test_an_edit_removes_old_passages_from_both_searches_ingest_027(tmp_path, index):
    write(tmp_path / "docs", a_md="one. two.")
    run(tmp_path / "docs", index)
    write(tmp_path / "docs", a_md="one. three.")
    run(tmp_path / "docs", index)
    opened = Opened(index)
    opened.check()
    for word, num_hits in (("one", 1), ("three", 1), ("two", 0)):
        assert len(opened.sparse.search(word, 5)) == num_hits
    hits = opened.dense.search(HashEmbedder().vector("one. two."), 5)
    assert [opened.passages[row].text for row, _ in hits] == ["one. three."]


@pytest.mark.parametrize("other", [{"embedder": HashEmbedder("other")}, {"chunk_tokens": 20}])
def test_another_recipe_starts_anew(docs, index, other):
    run(docs, index)
    options = {"embedder": HashEmbedder(), "chunk_tokens": 16, **other}
    report = build_index([docs], index, **options)
    assert (report.num_reused, report.num_embedded, report.changed) == (0, 3, True)


def test_a_damaged_index_is_built_from_scratch_with_a_warning(docs, index):
    run(docs, index)
    (open_generation(index).folder / "vectors.npy").write_bytes(b"")
    report = run(docs, index)
    assert report.num_embedded == 3
    assert report.warnings[0].startswith("index built from scratch, the former is unusable: ")
    Opened(index).check()


def test_a_file_that_cannot_be_read_does_not_stop_the_others(docs, index):
    write(docs, bad_md=b"\0\1\2", empty_txt="", broken_pdf=b"%PDF-1.4 x", head_md="# only")
    (docs / "gone.md").symlink_to("nowhere")
    report = run(docs, index)
    assert report.num_files == 2
    assert {file.source: file.reason.split(":")[0] for file in report.skipped} == {
        "bad.md": "looks binary",
        "broken.pdf": "cannot read the PDF",
        "c.py": "not a document",
        "empty.txt": "the file is empty",
        "gone.md": "cannot be opened",
        "head.md": "holds nothing but headings",
    }
    assert [file.source for file in report.skipped] == sorted(f.source for f in report.skipped)
    again = run(docs, index)
    assert (again.changed, again.skipped, again.num_reused) == (False, report.skipped, 2)


def test_a_file_that_goes_while_the_index_is_built_is_told(tmp_path):
    done: list[int] = []
    files = [DocumentFile("a.md", tmp_path / "gone"), DocumentFile("b.md", tmp_path)]
    found, unopened = ingest(files, NOTHING_FORMER, lambda document: (), done.append)
    assert found == ()
    assert [file.source for file in unopened] == ["a.md", "b.md"]
    assert all(file.reason.startswith("cannot be opened: ") for file in unopened)
    assert done == [1, 2]


def test_warnings_of_readers_name_the_file_and_last(tmp_path, index):
    import pypdfium2

    write(tmp_path / "docs", a_txt="alpha")
    pdf = pypdfium2.PdfDocument.new()
    page = pdf.new_page(200, 200)
    font = pypdfium2.raw.FPDFText_LoadStandardFont(pdf, b"Helvetica")
    text = pypdfium2.raw.FPDFPageObj_CreateTextObj(pdf, font, 12.0)
    letters = (pypdfium2.raw.FPDF_WCHAR * 3)(*map(ord, "hi"), 0)
    pypdfium2.raw.FPDFText_SetText(text, letters)
    pypdfium2.raw.FPDFPage_InsertObject(page, text)
    page.gen_content()
    pdf.new_page(200, 200)
    pdf.save(tmp_path / "docs" / "b.pdf")
    pypdfium2.raw.FPDFFont_Close(font)
    pdf.close()
    for _ in range(2):
        report = run(tmp_path / "docs", index)
        assert report.warnings == ("b.pdf: no text on page 2 (scanned?)",)
    assert [p.location for p in Opened(index).passages] == ["line 1", "page 1"]


def test_nothing_readable_is_an_error_with_reasons(tmp_path, index):
    write(tmp_path / "docs")
    with pytest.raises(CorpusIndexError, match=r"no readable documents in .*docs \(nothing there"):
        run(tmp_path / "docs", index)
    write(tmp_path / "docs", a_md="", b_md="", c_md="", d_md="")
    with pytest.raises(CorpusIndexError, match=r"\(a.md: .*; b.md: .*; c.md: the file is empty\)"):
        run(tmp_path / "docs", index)
    with pytest.raises(CorpusIndexError, match="no such folder"):
        run(tmp_path / "nowhere", index)


def test_an_index_survives_when_its_documents_are_gone(docs, index):
    run(docs, index)
    for path in docs.iterdir():
        path.unlink()
    with pytest.raises(CorpusIndexError, match="no readable documents"):
        run(docs, index)
    assert len(Opened(index).passages) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunk_tokens": 0}, "chunk_tokens must be from 1 to 256, .* was: 0"),
        ({"chunk_tokens": 257}, "chunk_tokens must be from 1 to 256, .* was: 257"),
        ({"batch_size": 0}, "batch_size must be at least 1, was: 0"),
    ],
)
def test_settings_are_checked(docs, index, options, message):
    with pytest.raises(ConfigError, match=message):
        build_index([docs], index, HashEmbedder(), **options)


def test_progress_is_told_by_stage(docs, index):
    told: list[tuple[str, int, int]] = []
    run(docs, index, batch_size=2, progress=lambda *step: told.append(step))
    assert told == [
        ("read", 1, 2),
        ("read", 2, 2),
        ("embed", 2, 3),
        ("embed", 3, 3),
        ("save", 0, 1),
        ("save", 1, 1),
    ]


def test_equal_texts_are_embedded_once(tmp_path, index):
    write(tmp_path / "docs", a_txt="same", b_txt="same", c_txt="other")
    assert run(tmp_path / "docs", index).num_embedded == 2
    Opened(index).check()


def test_several_folders_make_one_index(docs, tmp_path, index):
    write(tmp_path / "more", a_md="delta")
    run([docs, tmp_path / "more"], index)
    sources = [passage.source for passage in Opened(index).passages]
    assert sources == ["docs/a.md", "docs/a.md", "docs/b.txt", "more/a.md"]


def test_an_index_inside_its_folder_does_not_index_itself(docs):
    run(docs, docs / "index")
    report = run(docs, docs / "index")
    assert (report.changed, len(report.skipped)) == (False, 1)


def test_a_failed_run_leaves_the_former_index_and_its_finished_work(docs, index):
    run(docs, index)
    write(docs, **{f"n{i}_txt": f"new {i}" for i in range(6)})
    with pytest.raises(RuntimeError, match="out of memory"):
        run(docs, index, HashEmbedder(fail_after=4), batch_size=2)
    assert len(Opened(index).passages) == 3
    report = run(docs, index)
    assert (report.num_passages, report.num_embedded) == (9, 2)
    Opened(index).check()
    assert not (index / "next").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from test_indexing import HashEmbedder
from flare_runtime.retrieval.indexing import build_index

class Killed(HashEmbedder):
    def embed(self, texts):
        if self.embedded:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().embed(texts)

build_index([Path(sys.argv[1])], Path(sys.argv[2]), Killed(), chunk_tokens=16, batch_size=2)
"""


def test_a_killed_run_can_be_resumed(docs, index):
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", KILLED, str(docs), str(index), here]
    assert subprocess.run(command, check=False).returncode == -9
    with pytest.raises(CorpusIndexError, match="not an index"):
        open_generation(index)
    assert run(docs, index, batch_size=2).num_embedded == 1
    Opened(index).check()


def test_the_cache_forgets_records_that_were_cut_off(tmp_path):
    embedder = HashEmbedder()
    texts = ["one", "two", "three"]
    with EmbeddingCache(tmp_path, "hash", 8) as cache:
        cache.add(texts, np.stack([embedder.vector(text) for text in texts]))
    (path,) = tmp_path.iterdir()
    data = bytearray(path.read_bytes()[:-5])
    data[70:100] = bytes(30)
    path.write_bytes(bytes(data))
    with EmbeddingCache(tmp_path, "hash", 8) as cache:
        assert [text in cache for text in texts] == [True, False, False]
        cache.add(["four"], embedder.vector("four")[None])
        np.testing.assert_array_equal(cache.get("one"), embedder.vector("one"))
        np.testing.assert_array_equal(cache.get("four"), embedder.vector("four"))
    with EmbeddingCache(tmp_path, "other", 8) as cache:
        assert "one" not in cache


def test_a_page_that_its_parser_chokes_on_is_skipped(docs, index):
    (docs / "odd.html").write_bytes(b'<meta charset="unicode_escape"><p>x \\ud800</p>')
    report = run(docs, index)
    reasons = {skipped.source: skipped.reason for skipped in report.skipped}
    assert reasons["odd.html"].startswith("cannot be read")
    assert report.num_passages > 0


def test_an_index_may_be_replaced_while_it_is_opened(docs, index):
    """What was opened is gone when its files are read: the new generation is opened instead."""
    run(docs, index)
    former = open_generation(index)
    (docs / "new.md").write_text("# New\n\nAnother page.\n")
    run(docs, index)
    assert not is_live(index, former)
    assert not former.folder.exists()
    assert open_search_index(index).passages
