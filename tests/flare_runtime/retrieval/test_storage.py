import os
import subprocess
import sys
from dataclasses import replace

import pytest

from flare_runtime.errors import CorpusIndexError
from flare_runtime.retrieval.documents import Skipped
from flare_runtime.retrieval.manifest import FileRecord, Manifest, read_manifest, write_manifest
from flare_runtime.retrieval.storage import (
    has_index,
    lock_index,
    open_generation,
    publish,
    work_folder,
)

MANIFEST = Manifest(
    embedder="toy",
    dimension=4,
    chunk_tokens=64,
    reader_version=1,
    files={"a.md": FileRecord("00", ("p1", "p2"), ("odd",)), "b.md": FileRecord("11", reason="x")},
    skipped=(Skipped("c.py", "no document"),),
    created="2026-01-01T00:00:00+00:00",
)


def put(index, content: str):
    def fill(folder):
        (folder / "passages.jsonl").write_text(content)
        (folder / "vectors.npy").write_text(content * 2)
        return MANIFEST

    with lock_index(index):
        return publish(index, fill)


def names(index):
    return sorted(path.name for path in index.iterdir())


def content(index) -> str:
    return (open_generation(index).folder / "passages.jsonl").read_text()


def test_what_is_published_is_opened(tmp_path):
    index = tmp_path / "deep" / "index"
    assert not has_index(index)
    published = put(index, "one")
    assert has_index(index)
    assert open_generation(index) == published
    assert replace(published.manifest, checksums={}) == MANIFEST
    assert set(published.manifest.checksums) == {"passages.jsonl", "vectors.npy"}


def test_a_new_generation_replaces_the_old_and_tidies_up(tmp_path):
    first = put(tmp_path, "one")
    (tmp_path / "gen-0009-00000000").mkdir()
    (work_folder(tmp_path) / "leftover").write_text("x")
    second = put(tmp_path, "two")
    assert first.folder.name.startswith("gen-0001-")
    assert second.folder.name.startswith("gen-0010-")
    assert names(tmp_path) == ["CURRENT", second.folder.name, "lock"]
    assert content(tmp_path) == "two"


def test_an_error_half_way_leaves_the_former_generation_live(tmp_path):
    put(tmp_path, "one")

    def fail(folder):
        (folder / "passages.jsonl").write_text("half")
        raise RuntimeError("stop")

    with lock_index(tmp_path), pytest.raises(RuntimeError, match="stop"):
        publish(tmp_path, fail)
    assert content(tmp_path) == "one"
    put(tmp_path, "two")
    assert content(tmp_path) == "two"
    assert "next" not in names(tmp_path)


KILLED = """
import os, signal, sys
from pathlib import Path
from flare_runtime.retrieval import storage
from flare_runtime.retrieval.manifest import Manifest

index, step = Path(sys.argv[1]), sys.argv[2]

def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)

def fill(folder):
    (folder / "passages.jsonl").write_text("two")
    if step == "fill":
        die()
    return Manifest("toy", 4, 64, 1)

if step != "fill":
    setattr(storage, step, die)
with storage.lock_index(index):
    storage.publish(index, fill)
"""


@pytest.mark.parametrize(
    ("step", "live"), [("fill", "one"), ("_sync", "one"), ("_switch", "one"), ("_tidy", "two")]
)
def test_a_killed_run_leaves_a_whole_index(tmp_path, step, live):
    put(tmp_path, "one")
    run = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), step], check=False)
    assert run.returncode == -9
    assert content(tmp_path) == live
    put(tmp_path, "three")
    assert content(tmp_path) == "three"
    assert len(names(tmp_path)) == 3


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def alter(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("passages.jsonl", os.unlink, "index file is missing: .*passages.jsonl"),
        ("passages.jsonl", cut, "index file must have 3 bytes, has 2: .*passages.jsonl"),
        ("vectors.npy", alter, "index file was altered: .*vectors.npy"),
        ("manifest.json", os.unlink, "cannot read .*manifest.json: No such file"),
        ("manifest.json", lambda path: path.write_bytes(b"{"), "manifest.json is damaged"),
        (
            "manifest.json",
            lambda path: path.write_text('{"format": 1}'),
            "manifest.json is damaged",
        ),
        (
            "manifest.json",
            lambda path: path.write_text(path.read_text().replace("toy", "boy")),
            "manifest.json was altered",
        ),
        (
            "manifest.json",
            lambda path: path.write_text('{"format": 99, "new": 1}'),
            "index format must be 1, was: 99",
        ),
        ("../CURRENT", lambda path: path.write_text("gen-1"), "CURRENT is damaged"),
        ("../CURRENT", lambda path: path.write_bytes(b"\xff"), "CURRENT is damaged"),
        (
            "../CURRENT",
            lambda path: path.write_text("gen-0002-00000000"),
            "cannot read .*manifest.json",
        ),
        ("../CURRENT", os.unlink, "not an index: .* has no readable file CURRENT"),
    ],
)
def test_damage_is_named_together_with_the_remedy(tmp_path, file, damage, message):
    damage(put(tmp_path, "one").folder / file)
    with pytest.raises(CorpusIndexError, match=f"{message}.*; run `flare index DIR... -o "):
        open_generation(tmp_path)


def test_a_missing_index_is_an_error(tmp_path):
    with pytest.raises(CorpusIndexError, match="no index at .*nowhere; run `flare index"):
        open_generation(tmp_path / "nowhere")


def test_a_switch_between_two_looks_is_followed(tmp_path):
    put(tmp_path, "one")
    stale = (tmp_path / "CURRENT").read_text()
    put(tmp_path, "two")
    live = (tmp_path / "CURRENT").read_text()

    class Switching(type(tmp_path)):
        """Reads the former name once, as if the switch came right after."""

        reads = 0

        def read_text(self, encoding=None, errors=None):
            if self.name == "CURRENT":
                Switching.reads += 1
                return stale if Switching.reads == 1 else live
            return super().read_text(encoding, errors)

    assert open_generation(Switching(tmp_path)).folder.name == live.strip()


def test_a_second_run_is_refused_while_one_writes(tmp_path):
    with (
        lock_index(tmp_path),
        pytest.raises(CorpusIndexError, match=f"being written by process {os.getpid()}; wait"),
        lock_index(tmp_path),
    ):
        pass
    with lock_index(tmp_path):
        pass


def test_the_lock_of_a_dead_process_does_not_hold(tmp_path):
    (tmp_path / "lock").write_text("1")
    with lock_index(tmp_path):
        assert (tmp_path / "lock").read_text() == str(os.getpid())


def test_an_index_is_not_put_among_other_files(tmp_path):
    (tmp_path / "thesis.doc").write_text("x")
    with pytest.raises(CorpusIndexError, match="holds other files"), lock_index(tmp_path):
        pass
    with pytest.raises(CorpusIndexError, match="must be a folder, was a file"):
        with lock_index(tmp_path / "thesis.doc"):
            pass
    assert names(tmp_path) == ["thesis.doc"]


def test_a_manifest_comes_back_as_it_was(tmp_path):
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path, "mend it") == MANIFEST
