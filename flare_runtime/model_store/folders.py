"""Where models lie: the cache root, what is pulled, and the folder behind a name."""

import os
from dataclasses import dataclass
from pathlib import Path

from flare_runtime.errors import ModelError
from flare_runtime.model_store.content import read_json
from flare_runtime.model_store.hub import cached_hub_model, is_hub_name
from flare_runtime.model_store.manifest import MANIFEST_NAME, is_complete
from flare_runtime.model_store.registry import REGISTRY, Kind, ModelEntry

ROOT_VARIABLE = "FLARE_MODELS"
GENERATORS = ("ForCausalLM", "LMHeadModel")
"""How the architectures of causal language models are called."""
PARTS = {
    "config.json": ("config.json",),
    "a tokenizer (tokenizer.json)": (
        *("tokenizer.json", "tokenizer.model", "tokenizer_config.json"),
        *("vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model"),
    ),
    "weights (model.safetensors)": ("*.safetensors", "*.bin", "*.onnx", "onnx/*.onnx"),
}
"""What a model folder must have, and the patterns of which one is enough."""


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A registry entry as ``flare models list`` shows it. ``size`` is the download's, in bytes."""

    name: str
    kind: Kind
    license: str
    size: int
    pulled: bool
    folder: Path


def models_root() -> Path:
    """Where pulled models lie.

    ``$FLARE_MODELS`` if set; else ``models/base`` under the current folder if that has a
    ``models`` folder, as a checkout does; else ``~/.cache/flare/models``.
    """
    if chosen := os.environ.get(ROOT_VARIABLE):
        return Path(chosen).expanduser()
    if Path("models").is_dir():
        return Path("models/base").absolute()
    return Path.home() / ".cache" / "flare" / "models"


def find_entry(name: str) -> ModelEntry | None:
    """Look a name up in the registry."""
    return next((entry for entry in REGISTRY if entry.name == name), None)


def known_names(kind: Kind | None = None) -> str:
    """Registry names of a kind, or of all kinds, for an error message."""
    return ", ".join(entry.name for entry in REGISTRY if kind in (None, entry.kind))


def list_models() -> tuple[ModelStatus, ...]:
    """Every registry entry and whether its folder can be used; never uses the network."""
    root = models_root()
    return tuple(
        ModelStatus(
            entry.name,
            entry.kind,
            entry.license,
            entry.download_size,
            _is_usable(root / entry.name, entry),
            root / entry.name,
        )
        for entry in REGISTRY
    )


def resolve_model(name_or_path: str | os.PathLike[str], kind: Kind) -> Path:
    """Find a model's folder; never uses the network.

    A registry name means its pulled folder, even where a folder of that name exists (write
    ``./name`` for that one); else an existing folder means itself; else ``org/name`` means the
    snapshot in the local Hugging Face cache.

    Raises:
        ModelError: there is no such folder, it is incomplete, or the entry is of another kind.
    """
    name = os.fspath(name_or_path)
    entry = find_entry(name)
    folder = Path(name).expanduser()
    if entry:
        folder = _entry_folder(entry, kind)
    elif not name.strip() or not folder.exists():
        folder = _snapshot(name, kind)
    check_folder(folder)
    return folder


def model_kind(name: str) -> Kind:
    """What a model is for: as the registry says, or as its architecture does.

    Raises:
        ModelError: as ``resolve_model``.
    """
    if entry := find_entry(name):
        return entry.kind
    architectures = read_json(resolve_model(name, "generator") / "config.json").get("architectures")
    is_generator = any(str(kind).endswith(GENERATORS) for kind in architectures or ())
    return "generator" if is_generator else "embedder"


def _entry_folder(entry: ModelEntry, kind: Kind) -> Path:
    if entry.kind != kind:
        raise ModelError(
            f"the model must be of kind {kind} ({known_names(kind)}), "
            f"{entry.name} is of kind {entry.kind}"
        )
    folder = models_root() / entry.name
    if not folder.exists():
        raise ModelError(
            f"the model {entry.name} is not in {folder.parent}; "
            f"run `flare models pull {entry.name}`"
        )
    return folder


def _snapshot(name: str, kind: Kind) -> Path:
    if not is_hub_name(name):
        raise ModelError(
            f"a model must be a known name ({known_names(kind)}), a folder or a hub name "
            f"(org/name), was: {name!r}"
        )
    folder = cached_hub_model(name)
    if folder is None:
        raise ModelError(
            f"{name} is neither a folder nor in the local Hugging Face cache; "
            f"run `flare models pull {name}`"
        )
    return folder


def check_folder(folder: Path) -> None:
    """Refuse a folder that no model can be loaded from.

    Raises:
        ModelError: it is a file, or something is missing.
    """
    if not folder.is_dir():
        raise ModelError(f"a model must be a folder, {folder} is a file")
    if missing := missing_parts(folder):
        raise ModelError(f"the model folder {folder} lacks {', '.join(missing)}")


def missing_parts(folder: Path) -> tuple[str, ...]:
    """Name what a model folder lacks to be loaded."""
    return tuple(
        part
        for part, patterns in PARTS.items()
        if not any(path for pattern in patterns for path in folder.glob(pattern))
    )


def _is_usable(folder: Path, entry: ModelEntry) -> bool:
    if (folder / MANIFEST_NAME).exists():
        return is_complete(folder, entry)
    return folder.is_dir() and not missing_parts(folder)
