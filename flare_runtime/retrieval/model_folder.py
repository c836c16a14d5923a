"""Checks of a Hugging Face model folder, made before the heavy libraries load it."""

import json
from pathlib import Path
from typing import Any

from flare_runtime.errors import ModelError

REQUIRED_FILES = ("config.json", "tokenizer.json")


def require_model_files(folder: Path, role: str) -> None:
    """Refuse a folder that cannot be the ``role`` ("embedder", "reranker").

    Raises:
        ModelError: the folder is not there, or has no configuration or tokenizer.

    """
    if not folder.is_dir():
        raise ModelError(f"no {role} at {folder}: name a folder or use `flare models pull`")
    for file in REQUIRED_FILES:
        if not (folder / file).is_file():
            raise ModelError(f"{role} folder has no {file}: {folder}; pull the model again")


def read_settings(path: Path) -> dict[str, Any]:
    """Read a JSON object; an absent file gives none of its settings.

    Raises:
        ModelError: the file is not a JSON object.

    """
    if not path.is_file():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"cannot read {path}: {error}; pull the model again") from error
    if not isinstance(settings, dict):
        raise ModelError(f"{path} must hold a JSON object; pull the model again")
    return settings
