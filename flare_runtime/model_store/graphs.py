"""Where built graphs lie, and which one serves a model."""

from pathlib import Path

from flare_runtime.config import Engine, Precision
from flare_runtime.errors import ModelError
from flare_runtime.model_store.graph_manifest import (
    GRAPH_MANIFEST_NAME,
    GraphManifest,
    is_current,
    read_graph_manifest,
)


def graph_folder(source: Path, precision: Precision) -> Path:
    """Where a model's graph lies unless told otherwise: inside the model's own folder."""
    return source / f"onnx-{precision}"


def is_graph(folder: Path) -> bool:
    """Say whether the folder is what ``flare models build`` makes."""
    return (folder / GRAPH_MANIFEST_NAME).is_file()


def is_built(folder: Path, source: Path) -> bool:
    """Say whether the folder holds a whole graph of what the source holds now."""
    try:
        manifest = read_graph_manifest(folder)
        return manifest is not None and is_current(manifest, source)
    except ModelError:
        return False


def find_graph(name: str, folder: Path, engine: Engine, precision: Precision) -> Path | None:
    """Find the graph to serve a model with; None where transformers is to do it.

    Args:
        name: what a command would call the model.
        folder: the model's folder, or that of a graph.
        engine: ``auto`` takes the graph where there is one.
        precision: the graph's.

    Raises:
        ModelError: a graph is asked for and there is none, it is damaged, or it was built from
            other weights, another tokenizer or another template than the folder holds now.
    """
    if is_graph(folder):
        _refuse_other(read_graph_manifest(folder), folder, engine)
        return folder
    target = graph_folder(folder, precision)
    if engine == "transformers" or (engine == "auto" and not is_graph(target)):
        return None
    manifest = read_graph_manifest(target)
    if manifest is None:
        raise ModelError(
            f"the model {name!r} has no {precision} graph; "
            f"run `flare models build {name} --precision {precision}`"
        )
    if not is_current(manifest, folder):
        raise ModelError(
            f"the graph in {target} was built from another model than {folder} holds now; "
            f"run `{manifest.command}`, or use --set model.engine=transformers"
        )
    return target


def _refuse_other(manifest: GraphManifest | None, folder: Path, engine: Engine) -> None:
    if engine == "transformers":
        source = manifest.source if manifest else "another folder"
        raise ModelError(
            f"{folder} is an ONNX graph, which transformers does not run; name its source, {source}"
        )
