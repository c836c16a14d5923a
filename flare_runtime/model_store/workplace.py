"""Folders that appear whole or not at all: one maker at a time, and a rename at the end."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def sole_maker(target: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the target's lock, which the system lets go of even when the process is killed.

    ``on_wait`` is called if another process holds it. What a killed one left behind is removed.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_wait()
        lock.acquire()
    try:
        for leftover in target.parent.glob(f".{target.name}.work-*"):
            shutil.rmtree(leftover)
        yield
    finally:
        lock.release()


@contextmanager
def work_folder(target: Path) -> Iterator[Path]:
    """Give an empty hidden folder beside the target, gone afterwards."""
    work = target.with_name(f".{target.name}.work-{os.getpid()}")
    work.mkdir()
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def put_in_place(finished: Path, target: Path) -> None:
    """Rename a folder inside the work folder to the target; what was there goes with the work."""
    if target.exists():
        target.rename(finished.with_name("replaced"))
    finished.rename(target)
