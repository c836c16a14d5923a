"""Files of traces: JSONL, one trace a line, read as a stream and appended to safely."""

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from critic.trace_record import (
    Span,
    Split,
    Trace,
    TraceError,
    TracePassage,
    format_trace,
    merge_overlaps,
    parse_trace,
)

__all__ = [
    "Span",
    "Split",
    "Trace",
    "TraceError",
    "TracePassage",
    "append_trace",
    "format_trace",
    "merge_overlaps",
    "parse_trace",
    "read_lines",
    "read_traces",
    "write_traces",
]

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a trace file that are not blank, numbered from 1; gzip by content.

    Raises:
        TraceError: the file cannot be read.
    """
    try:
        with Path(path).open("rb") as raw:
            packed = raw.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            raw.seek(0)
            lines = cast(BinaryIO, gzip.open(raw)) if packed else raw
            for number, line in enumerate(lines, start=1):
                content = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
                if content.strip():
                    yield number, content
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{path}: cannot be read: {_reason(error)}") from error


def read_traces(path: str | os.PathLike[str]) -> Iterator[Trace]:
    """Read a JSONL file, plain or gzipped, one trace at a time. Blank lines are skipped.

    Raises:
        TraceError: the file cannot be read, a line is no trace, or an id comes twice.
    """
    lines_by_id: dict[str, int] = {}
    for number, line in read_lines(path):
        try:
            trace = parse_trace(line)
        except TraceError as error:
            raise TraceError(f"{path}:{number}: {error}") from error
        first = lines_by_id.setdefault(trace.id, number)
        if first != number:
            raise TraceError(f"{path}:{number}: trace {trace.id!r}: the id stands in line {first}")
        yield trace


def append_trace(path: str | os.PathLike[str], trace: Trace) -> None:
    """Add one line to a JSONL file and wait until it is on disk; creates the file.

    Safe beside other appenders: each line is one write in append mode. If an earlier writer died
    in mid-line, the line starts with a newline, so that only the torn line is lost. Two appenders
    that both see the tear leave a blank line, which readers skip.

    Raises:
        TraceError: the trace or the file cannot be written; the latter names the file.
    """
    line = format_trace(trace)
    try:
        _refuse_gzip_name(Path(path))
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            data = _after_torn_line(descriptor) + line
            written = os.write(descriptor, data)
            if written < len(data):
                raise OSError(f"only {written} of {len(data)} bytes fitted")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise TraceError(
            f"{path}: trace {trace.id!r} cannot be appended: {_reason(error)}"
        ) from error


def write_traces(path: str | os.PathLike[str], traces: Iterable[Trace]) -> int:
    """Write a whole JSONL file, in place of what was there; all of it or nothing.

    Returns how many traces were written.

    Raises:
        TraceError: a trace or the file cannot be written.
    """
    target = Path(path)
    try:
        _refuse_gzip_name(target)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
            draft = Path(folder) / target.name
            with draft.open("wb") as file:
                count = sum(1 for trace in traces if file.write(format_trace(trace)))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {_reason(error)}") from error
    return count


def _refuse_gzip_name(path: Path) -> None:
    if path.suffix == ".gz":
        raise OSError("gzipped files are only read; name a file without .gz")


def _after_torn_line(descriptor: int) -> bytes:
    """Return a newline if the file's last line lacks one."""
    size = os.fstat(descriptor).st_size
    return b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
