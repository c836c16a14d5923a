"""Reads files of traces and tells everything that is wrong with them, and what they hold."""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from critic.trace import Trace, TraceError, merge_overlaps, parse_trace, read_lines
from flare_runtime.sentences import split_sentences


@dataclass(frozen=True, slots=True)
class FileReport:
    """What one file holds, malformed lines left out."""

    path: str
    traces: int
    labelled: int
    groups: int
    sentences: int
    unsupported_sentences: int
    """Sentences that share a character, not a blank, with an unsupported span."""
    spans: int
    """Unsupported spans as they stand in the file."""
    merged_overlaps: int
    """By how many spans fewer there are once overlapping ones are merged."""


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What all files hold, and one line a problem; without problems they can be trained on."""

    files: tuple[FileReport, ...]
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Findings:
    """Grows while files are read: what must be unique or unmixed across all of them."""

    problems: list[str] = field(default_factory=list)
    place_of_id: dict[str, str] = field(default_factory=dict)
    splits_of_group: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """Of each group, the splits it is in, and where each was first met."""


def validate_traces(paths: Sequence[str | os.PathLike[str]]) -> ValidationReport:
    """Check that every line is a trace, no id comes twice and no group is in two splits.

    Files are read to their end whatever is found; a group that nobody has split yet (``""``) may
    also be in one split.
    """
    findings = _Findings()
    files = []
    for path in dict.fromkeys(os.fspath(path) for path in paths):
        num_problems = len(findings.problems)
        traces = tuple(_read(path, findings))
        if not traces and len(findings.problems) == num_problems:
            findings.problems.append(f"{path}: holds no traces")
        files.append(_count(path, traces))
    findings.problems.extend(_mixed_groups(findings))
    return ValidationReport(tuple(files), tuple(findings.problems))


def _read(path: str, findings: _Findings) -> Iterator[Trace]:
    try:
        for number, line in read_lines(path):
            place = f"{path}:{number}"
            try:
                trace = parse_trace(line)
            except TraceError as error:
                findings.problems.append(f"{place}: {error}")
                continue
            _remember(trace, place, findings)
            yield trace
    except TraceError as error:
        findings.problems.append(str(error))


def _remember(trace: Trace, place: str, findings: _Findings) -> None:
    first = findings.place_of_id.setdefault(trace.id, place)
    if first != place:
        findings.problems.append(f"{place}: trace {trace.id!r}: the id stands at {first} already")
    if trace.split:
        findings.splits_of_group[trace.group].setdefault(trace.split, place)


def _mixed_groups(findings: _Findings) -> Iterator[str]:
    for group, places in findings.splits_of_group.items():
        if len(places) > 1:
            found = ", ".join(f"{split} ({place})" for split, place in places.items())
            yield f"group {group!r} must be in one split, was in: {found}"


def _count(path: str, traces: Sequence[Trace]) -> FileReport:
    sentences = [_judge_sentences(trace) for trace in traces]
    return FileReport(
        path=path,
        traces=len(traces),
        labelled=sum(trace.labelled for trace in traces),
        groups=len({trace.group for trace in traces}),
        sentences=sum(map(len, sentences)),
        unsupported_sentences=sum(map(sum, sentences)),
        spans=sum(len(trace.unsupported) for trace in traces),
        merged_overlaps=sum(merge_overlaps(trace.unsupported)[1] for trace in traces),
    )


def _judge_sentences(trace: Trace) -> list[bool]:
    """Say of each sentence of the answer whether a span reaches into it."""
    return [
        any(
            trace.answer[max(sentence.start, span.start) : min(sentence.end, span.end)].strip()
            for span in trace.unsupported
        )
        for sentence in split_sentences(trace.answer)
    ]
