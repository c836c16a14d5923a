"""One command from a pulled model to a folder with graph, tokenizer, template and manifest."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from flare_runtime.config import Precision
from flare_runtime.errors import ModelError
from flare_runtime.export.extra import require_extra
from flare_runtime.export.proof import prove_decoder, prove_encoder
from flare_runtime.model_store import Kind, graph_folder, is_built, model_kind, resolve_model
from flare_runtime.model_store.content import TEXT_FILES, source_hash, text_hash, weight_stamps
from flare_runtime.model_store.graph_manifest import FORMAT, GraphManifest, write_graph_manifest
from flare_runtime.model_store.manifest import file_sizes
from flare_runtime.model_store.workplace import put_in_place, sole_maker, work_folder

Stage = Literal["wait", "convert", "check"]
Progress = Callable[[Stage, int, int], None]
"""Called with the stage, the steps done and the steps in all."""


@dataclass(frozen=True, slots=True)
class _Order:
    name: str
    kind: Kind
    precision: Precision
    source: Path


def build(
    name: str,
    precision: Precision | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Make sure that a model has a graph that is current, and return the graph's folder.

    Args:
        name: as ``resolve_model`` takes it.
        precision: of the weights; int8 for a generator and fp32 for an embedder by default.
        output: where to write; by default inside the model's own folder, where it is found.
        progress: told how far it has come.

    Raises:
        ModelError: the model is not there or cannot be converted, the precision is not to be had,
            the graph does not compute what the model does, or the folder cannot be written.
    """
    kind = model_kind(name)
    chosen: Precision = precision or ("fp32" if kind == "embedder" else "int8")
    if kind == "embedder" and chosen != "fp32":
        raise ModelError(
            f"the precision of an embedder must be fp32, was: {chosen}; an index holds its vectors,"
            f" run `flare models build {name} --precision fp32`"
        )
    source = resolve_model(name, kind)
    target = output or graph_folder(source, chosen)
    report = progress or _be_silent
    if is_built(target, source):
        return target
    require_extra()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with sole_maker(target, lambda: report("wait", 0, 0)):
            if not is_built(target, source):  # another build may have been faster
                with work_folder(target) as work:
                    finished = work / "graph"
                    finished.mkdir()
                    _make(_Order(name, kind, chosen, source), finished, report)
                    put_in_place(finished, target)
    except OSError as error:
        raise ModelError(
            f"cannot write the graph to {target}: {error.strerror or error}; "
            "make room there, or name another folder with --output"
        ) from error
    return target


def _make(order: _Order, folder: Path, progress: Progress) -> None:
    """Leave the finished graph in ``folder``, its manifest written last."""
    from flare_runtime.export.decoder import export_decoder  # these import the extra
    from flare_runtime.export.encoder import export_encoder

    stamps = weight_stamps(order.source)
    sha256 = source_hash(order.source)
    if order.kind == "embedder":
        progress("convert", 0, 1)
        export_encoder(order.source, folder)
        progress("convert", 1, 1)
        layers: tuple[int, ...] = ()
    else:
        report = partial(progress, "convert")
        layers = export_decoder(order.source, folder, order.precision, report)
    _copy_text(order.source, folder)
    manifest = GraphManifest(
        format=FORMAT,
        source=order.name,
        kind=order.kind,
        precision=order.precision,
        layers=layers,
        source_sha256=sha256,
        text_sha256=text_hash(order.source),
        weights=stamps,
        built_with=_versions(),
        files=file_sizes(folder),
        agreement=None,
    )
    write_graph_manifest(folder, manifest)
    progress("check", 0, 1)
    if order.kind == "embedder":
        proof = prove_encoder(order.source, folder)
    else:
        proof = prove_decoder(order.source, folder, order.precision)
    write_graph_manifest(folder, replace(manifest, agreement=round(proof.agreement, 4)))
    progress("check", 1, 1)


def _copy_text(source: Path, folder: Path) -> None:
    for name in TEXT_FILES:
        if (source / name).is_file():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source / name, folder / name)


def _versions() -> str:
    packages = ("onnxruntime-genai", "onnx", "transformers")
    return ", ".join(f"{package} {version(package)}" for package in packages)


def _be_silent(stage: Stage, done: int, total: int) -> None:
    pass
