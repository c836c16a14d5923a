"""Progress and status lines on stderr: rich on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from flare_runtime.cli.units import readable_size

PLAIN_STEP = 0.25
"""Where there is no terminal, progress is a line every quarter."""


class Progress(Protocol):
    """Told how far a stage has come."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """``done`` of ``total`` units of ``stage`` are finished."""
        ...


def say(line: str) -> None:
    """Print one line on stderr."""
    if sys.stderr is not None:  # closed by the caller; print would take stdout instead
        print(line, file=sys.stderr, flush=True)


@contextmanager
def progress(what: str = "", in_bytes: bool = False) -> Iterator[Progress]:
    """Show the progress of long work on ``what`` while it runs."""
    if sys.stderr.isatty():
        with _rich_progress(what, in_bytes) as report:
            yield report
    else:
        yield _PlainProgress(what, in_bytes)


@contextmanager
def _rich_progress(what: str, in_bytes: bool) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    amount = DownloadColumn() if in_bytes else MofNCompleteColumn()
    tasks: dict[str, TaskID] = {}
    with Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        amount,
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bars:

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(f"{what} {stage}".strip(), total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report


class _PlainProgress:
    def __init__(self, what: str, in_bytes: bool) -> None:
        self._what = what
        self._in_bytes = in_bytes
        self._shown: dict[str, float] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        share = done / total if total else 1.0
        before = self._shown.get(stage)
        if before is not None and share < min(before + PLAIN_STEP, 1.0):
            return
        if before is not None and before >= 1.0:
            return
        self._shown[stage] = share
        amounts = [readable_size(n) if self._in_bytes else str(n) for n in (done, total)]
        say(f"{f'{self._what} {stage}'.strip()}: {amounts[0]} of {amounts[1]}")
