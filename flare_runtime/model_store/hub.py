"""Models of the Hugging Face hub: from the local cache, or fetched into it on request."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

from flare_runtime.errors import ModelError

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
PATTERNS = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja", "*.tiktoken", "*.md")
TIMEOUT_S = 10.0


def is_hub_name(name: str) -> bool:
    """Say whether ``name`` reads like ``org/name``."""
    return HUB_NAME.fullmatch(name) is not None


def cached_hub_model(name: str) -> Path | None:
    """Find a hub model's folder in the local cache; never uses the network."""
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(name, local_files_only=True, allow_patterns=list(PATTERNS))
    except (OSError, ValueError):
        return None
    return Path(folder)


def hub_model_size(name: str) -> int:
    """Ask the hub for the bytes to fetch; a short question that fails fast without network.

    Raises:
        ModelError: the hub cannot be reached or does not know the model.
    """
    from huggingface_hub import HfApi

    try:
        info = HfApi().model_info(name, timeout=TIMEOUT_S, files_metadata=True)
    except Exception as error:
        raise ModelError(_explain(name, error)) from error
    return sum(
        file.size or 0
        for file in info.siblings or ()
        if any(fnmatchcase(file.rfilename, pattern) for pattern in PATTERNS)
    )


def fetch_hub_model(name: str) -> Path:
    """Fetch a hub model into the local cache; continues what was begun.

    Raises:
        ModelError: the download failed.
    """
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(name, etag_timeout=TIMEOUT_S, allow_patterns=list(PATTERNS))
    except Exception as error:
        raise ModelError(_explain(name, error)) from error
    return Path(folder)


def _explain(name: str, error: Exception) -> str:
    from huggingface_hub.errors import GatedRepoError, OfflineModeIsEnabled, RepositoryNotFoundError

    match error:
        case OfflineModeIsEnabled():
            reason = "HF_HUB_OFFLINE forbids it; unset it to download"
        case GatedRepoError():
            reason = "its licence must be accepted first; log in with hf auth login"
        case RepositoryNotFoundError():
            reason = "no such model, or it is private; check the name, or run hf auth login"
        case _:
            text = str(error).strip().partition("\n")[0] or type(error).__name__
            reason = f"the hub cannot be reached or broke off ({text}); check network and proxy"
    return f"cannot pull {name}: {reason}"
