"""The note that a built graph is whole, and of what it was made: ``flare-graph.json``."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from flare_runtime.config import Precision
from flare_runtime.errors import ModelError
from flare_runtime.model_store.content import source_hash, text_hash, weight_stamps
from flare_runtime.model_store.manifest import file_sizes, read_manifest
from flare_runtime.model_store.registry import Kind

GRAPH_MANIFEST_NAME = "flare-graph.json"
FORMAT = 1
"""One more whenever the recipe changes: graphs of an older one are not current."""


@dataclass(frozen=True, slots=True)
class GraphManifest:
    """What a built folder holds. Written last, so a folder that has one is whole."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    format: int
    source: str
    """The name or folder that it was built from, as a command would give it."""
    kind: Kind
    precision: Precision
    layers: tuple[int, ...]
    """Residual streams that come out, numbered as in ``hidden_states``; none of an embedder's."""
    source_sha256: str
    """Hash of the weights as published."""
    text_sha256: str
    """Hash of tokenizer, template and configuration."""
    weights: dict[str, tuple[int, int]]
    """Size and time of change of the source's weights when they were read."""
    built_with: str
    agreement: float | None
    """Share of a text's positions at which graph and source find the same token most probable."""
    files: dict[str, int]
    """Size in bytes of every file, by path."""

    @property
    def command(self) -> str:
        """What builds it again."""
        return f"flare models build {self.source} --precision {self.precision}"


def read_graph_manifest(folder: Path) -> GraphManifest | None:
    """Read a folder's manifest; None where nothing was built.

    Raises:
        ModelError: it is damaged, or a file of the graph is not there at full size.
    """
    path = folder / GRAPH_MANIFEST_NAME
    try:
        manifest = TypeAdapter(GraphManifest).validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError) as error:
        raise ModelError(f"{path} is damaged; remove {folder} and build the graph again") from error
    sizes = file_sizes(folder)
    for name, size in manifest.files.items():
        if sizes.get(name) != size:
            raise ModelError(
                f"{folder / name} must have {size} bytes, has {sizes.get(name, 'none')}; "
                f"remove {folder} and run `{manifest.command}`"
            )
    return manifest


def write_graph_manifest(folder: Path, manifest: GraphManifest) -> None:
    """Write the note into a finished folder."""
    content = json.dumps(asdict(manifest), indent=2) + "\n"
    (folder / GRAPH_MANIFEST_NAME).write_text(content, encoding="utf-8")


def is_current(manifest: GraphManifest, source: Path) -> bool:
    """Say whether the folder that a graph was built from still holds the same model.

    Raises:
        ModelError: the source's manifest is damaged.
    """
    if manifest.format != FORMAT or text_hash(source) != manifest.text_sha256:
        return False
    if read_manifest(source) is None and weight_stamps(source) == manifest.weights:
        return True
    return source_hash(source) == manifest.source_sha256
