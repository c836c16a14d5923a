"""The trace: one record that the runtime writes, people label and training reads."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Literal

from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json

Split = Literal["", "train", "dev", "test"]

STRICT = ConfigDict(extra="forbid", strict=True)
MAX_SHOWN = 60
"""Longest piece of a wrong value that an error message repeats."""


class TraceError(ValueError):
    """A trace is malformed, or a file of traces cannot be read or written.

    One line: the file, the line and the record's id as far as they are known, and what is wrong.
    """


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of an answer that its passages do not support.

    Half-open, in Unicode code points. Any ``label`` counts as unsupported; suffixes such as
    ``|implicit_true`` are kept.
    """

    __pydantic_config__ = STRICT

    start: int
    end: int
    label: str

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise TraceError(
                f"a span must have 0 <= start < end, was: start {self.start}, end {self.end}"
            )


@dataclass(frozen=True, slots=True)
class TracePassage:
    """One passage that the generator had before it when it answered."""

    __pydantic_config__ = STRICT

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """A finished answer, its evidence, and where people found it unsupported.

    Raises:
        TraceError: ``id`` or ``group`` is empty, two passages share an id, or a span ends beyond
            the answer.
    """

    __pydantic_config__ = STRICT

    id: str
    group: str
    """The question or source that must never stand on both sides of a split."""
    split: Split
    """"" as long as nobody has split the traces."""
    source: str
    license: str
    generator: str
    question: str
    passages: tuple[TracePassage, ...]
    answer: str
    labelled: bool
    """True once a person has looked at the answer; without spans it is then fully supported."""
    unsupported: tuple[Span, ...]
    turn: Mapping[str, JsonValue] | None = None
    """The turn log that this trace was recorded from."""

    def __post_init__(self) -> None:
        for key, value in (("id", self.id), ("group", self.group)):
            if not value.strip():
                raise TraceError(f"{key} must not be empty")
        ids = [passage.id for passage in self.passages]
        if len(set(ids)) < len(ids):
            raise TraceError(f"passage ids must differ, were: {_short(', '.join(ids))}")
        for span in self.unsupported:
            if span.end > len(self.answer):
                raise TraceError(
                    f"a span must end within the answer of {len(self.answer)} characters, "
                    f"was: start {span.start}, end {span.end}"
                )


@cache
def _adapter() -> TypeAdapter[Trace]:
    return TypeAdapter(Trace)


def parse_trace(line: bytes) -> Trace:
    """Read one line of a trace file.

    Raises:
        TraceError: the line is no trace; unknown keys are errors. Names the record id, no file.
    """
    try:
        record = from_json(line, allow_inf_nan=False)
    except ValueError as error:
        raise TraceError(f"invalid JSON: {error}") from error
    try:
        return _adapter().validate_json(line)
    except ValidationError as error:
        faults = "; ".join(_describe(details) for details in error.errors(include_url=False))
        raise TraceError(f"{_name(record)}{faults}") from error


def format_trace(trace: Trace) -> bytes:
    """Write one line of a trace file, newline included; ``parse_trace`` gives the trace back.

    Raises:
        TraceError: text holds half a surrogate pair, or ``turn`` something that JSON has not.
    """
    try:
        record = asdict(trace)
        if trace.turn is None:
            del record["turn"]
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8") + b"\n"
    except (TypeError, ValueError) as error:
        raise TraceError(f"trace {trace.id!r} cannot be written as JSON: {error}") from error


def merge_overlaps(spans: Iterable[Span]) -> tuple[tuple[Span, ...], int]:
    """Merge spans that share a character.

    Returns the spans in order of their start, none overlapping, and ``num_merged``, how many
    fewer they are. A merged span's label is its parts' distinct labels joined by `` + ``. Spans
    that only touch stay apart.
    """
    merged: list[Span] = []
    num_merged = 0
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if merged and span.start < merged[-1].end:
            merged[-1] = _join(merged[-1], span)
            num_merged += 1
        else:
            merged.append(span)
    return tuple(merged), num_merged


def _join(first: Span, second: Span) -> Span:
    labels = dict.fromkeys([*first.label.split(" + "), *second.label.split(" + ")])
    return Span(first.start, max(first.end, second.end), " + ".join(labels))


def _describe(details: ErrorDetails) -> str:
    where = ".".join(str(part) for part in details["loc"])
    what = details["msg"].removeprefix("Value error, ")
    match details["type"]:
        case "unexpected_keyword_argument":
            return f"{where}: unknown key"
        case "missing" | "value_error":
            return f"{where}: {what}" if where else what
        case _:
            return f"{where or 'record'}: {what}, was: {_short(repr(details['input']))}"


def _name(record: JsonValue) -> str:
    match record:
        case {"id": str(name)}:
            return f"trace {_short(repr(name))}: "
        case _:
            return ""


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
