"""Checks of a Hugging Face model folder, made before the heavy libraries load it."""

from pathlib import Path

from flare_runtime.errors import ModelError

REQUIRED_FILES = ("config.json", "tokenizer.json")
PULL_AGAIN = "pull the model again"


def require_model_files(folder: Path, role: str, remedy: str = PULL_AGAIN) -> None:
    """Refuse a folder that cannot be the ``role`` ("embedder", "reranker").

    Args:
        folder: the model's.
        role: what the model is for.
        remedy: what to do about an incomplete folder.

    Raises:
        ModelError: the folder is not there, or has no configuration or tokenizer.

    """
    if not folder.is_dir():
        raise ModelError(f"no {role} at {folder}: name a folder or use `flare models pull`")
    for file in REQUIRED_FILES:
        if not (folder / file).is_file():
            raise ModelError(f"{role} folder has no {file}: {folder}; {remedy}")
