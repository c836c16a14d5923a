"""The Trace record, the files it is kept in, and spans that overlap."""

import gzip
import json
import multiprocessing
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from critic.trace import (
    Span,
    Trace,
    TraceError,
    TracePassage,
    append_trace,
    format_trace,
    merge_overlaps,
    parse_trace,
    read_lines,
    read_traces,
    write_traces,
)

TRACE = Trace(
    id="t-1",
    group="g-1",
    split="dev",
    source="demo",
    license="CC0-1.0",
    generator="tiny",
    question="Which port?",
    passages=(TracePassage("p-1", "Port 8080."), TracePassage("p-2", "Nothing.")),
    answer="🚀 Port 8080 on Tuesdays.",
    labelled=True,
    unsupported=(Span(12, 23, "Subtle|implicit_true"),),
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
named = text.filter(str.strip)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
).filter(lambda value: "inf" not in repr(value))


@st.composite
def traces(draw):
    answer = draw(text)
    spans = []
    if answer:
        for _ in range(draw(st.integers(0, 3))):
            start = draw(st.integers(0, len(answer) - 1))
            spans.append(Span(start, draw(st.integers(start + 1, len(answer))), draw(text)))
    passage_ids = draw(st.lists(text, unique=True, max_size=3))
    return Trace(
        id=draw(named),
        group=draw(named),
        split=draw(st.sampled_from(["", "train", "dev", "test"])),
        source=draw(text),
        license=draw(text),
        generator=draw(text),
        question=draw(text),
        passages=tuple(TracePassage(name, draw(text)) for name in passage_ids),
        answer=answer,
        labelled=draw(st.booleans()),
        unsupported=tuple(spans),
        turn=draw(st.none() | st.dictionaries(text, json_values, max_size=3)),
    )


def record(**changes):
    return {**json.loads(format_trace(TRACE)), **changes}


def line(**changes):
    return json.dumps(record(**changes)).encode()


@given(traces())
def test_a_trace_survives_the_file_format(trace):
    written = format_trace(trace)
    assert written.count(b"\n") == 1 and written.endswith(b"\n")
    assert parse_trace(written) == trace


def test_the_format_is_the_documented_one():
    assert record() == {
        "id": "t-1",
        "group": "g-1",
        "split": "dev",
        "source": "demo",
        "license": "CC0-1.0",
        "generator": "tiny",
        "question": "Which port?",
        "passages": [{"id": "p-1", "text": "Port 8080."}, {"id": "p-2", "text": "Nothing."}],
        "answer": "🚀 Port 8080 on Tuesdays.",
        "labelled": True,
        "unsupported": [{"start": 12, "end": 23, "label": "Subtle|implicit_true"}],
    }


def test_offsets_are_code_points():
    trace = parse_trace(line())
    span = trace.unsupported[0]
    assert trace.answer[span.start : span.end] == "on Tuesdays"
    whole = {"start": 0, "end": len(TRACE.answer), "label": "x"}
    assert parse_trace(line(unsupported=[whole])).unsupported[0].end == len(TRACE.answer)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"note": 1}, "note: unknown key"),
        ({"passages": [{"id": "p", "text": "", "title": ""}]}, "passages.0.title: unknown key"),
        ({"unsupported": [{"start": 0, "end": 1, "label": "", "x": 1}]}, "0.x: unknown key"),
        ({"split": "validation"}, "split: Input should be '', 'train', 'dev' or 'test'"),
        ({"answer": None}, "answer: Input should be a valid string, was: None"),
        ({"labelled": 1}, "labelled: Input should be a valid boolean, was: 1"),
        ({"group": 7}, "group: Input should be a valid string, was: 7"),
        ({"group": " "}, "group must not be empty"),
        ({"turn": []}, "turn: Input should be an object"),
        ({"passages": [{"id": "p", "text": ""}] * 2}, "passage ids must differ, were: p, p"),
        ({"passages": [{"id": "p"}]}, "passages.0.text: Field required"),
        ({"unsupported": {}}, "unsupported: Input should be"),
        ({"unsupported": [{"start": 1, "end": 1, "label": ""}]}, "was: start 1, end 1"),
        ({"unsupported": [{"start": 2, "end": 1, "label": ""}]}, "was: start 2, end 1"),
        ({"unsupported": [{"start": -1, "end": 1, "label": ""}]}, "was: start -1, end 1"),
        ({"unsupported": [{"start": 0, "end": 25, "label": ""}]}, "answer of 24 characters"),
        ({"unsupported": [{"start": 0.0, "end": True, "label": ""}]}, "0.end: Input should be"),
        ({"unsupported": [{"start": 0, "end": 1}]}, "unsupported.0.label: Field required"),
    ],
)
def test_a_malformed_record_is_refused_by_name(changes, complaint):
    with pytest.raises(TraceError) as caught:
        parse_trace(line(**changes))
    message = str(caught.value)
    assert message.startswith("trace 't-1': ") and complaint in message
    assert "\n" not in message


@pytest.mark.parametrize("key", [key for key in record() if key != "turn"])
def test_every_key_but_turn_is_required(key):
    incomplete = record()
    del incomplete[key]
    with pytest.raises(TraceError, match=f"{key}: Field required"):
        parse_trace(json.dumps(incomplete).encode())


@pytest.mark.parametrize(
    "content",
    [
        *(b"{", b"\xff\xfe", b"[" * 10_000, b"{} {}", b"[]", b"null", b"3", b'"t"', b"{}"),
        line(id=3),
        line(id=""),
        line(turn={"score": float("nan")}),
        line(turn={"score": float("-inf")}),
        line(answer="\ud83d"),
    ],
)
def test_what_is_no_record_is_refused(content):
    with pytest.raises(TraceError):
        parse_trace(content)


def test_a_long_wrong_value_is_cut_short():
    with pytest.raises(TraceError) as caught:
        parse_trace(line(split="x" * 5_000))
    assert len(str(caught.value)) < 200


def test_a_trace_built_in_code_obeys_the_same_rules():
    with pytest.raises(TraceError, match="must end within the answer of 3 characters"):
        replace(TRACE, answer="abc")
    with pytest.raises(TraceError, match="id must not be empty"):
        replace(TRACE, id="")


@pytest.mark.parametrize(
    "trace",
    [
        replace(TRACE, question="half \ud83d"),
        replace(TRACE, turn={"score": float("nan")}),
        replace(TRACE, turn={"time": object()}),
    ],
)
def test_what_json_cannot_hold_is_not_written(trace, tmp_path):
    with pytest.raises(TraceError, match="trace 't-1' cannot be written as JSON"):
        append_trace(tmp_path / "log.jsonl", trace)
    assert not (tmp_path / "log.jsonl").exists()


# Reading files


def numbered(count):
    return [replace(TRACE, id=f"t-{number}") for number in range(count)]


@pytest.mark.parametrize("packed", [False, True])
def test_reading_gives_back_what_was_written(tmp_path, packed):
    path = tmp_path / "traces.jsonl"
    assert write_traces(path, iter(numbered(3))) == 3
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_traces(path)) == numbered(3)
    assert list(read_traces(str(path))) == numbered(3)
    assert [entry.name for entry in tmp_path.iterdir()] == ["traces.jsonl"]


def test_blank_lines_line_ends_and_byte_order_mark_do_not_matter(tmp_path):
    path = tmp_path / "traces.jsonl"
    first, second = (format_trace(trace).rstrip() for trace in numbered(2))
    path.write_bytes(b"\xef\xbb\xbf" + first + b"\r\n\n  \t\r\n" + second)
    assert list(read_traces(path)) == numbered(2)
    assert [number for number, _ in read_lines(path)] == [1, 4]


def test_only_newlines_end_a_line(tmp_path):
    odd = replace(TRACE, question="a\u2028b\u2029c\x85d\x0be\x0cf\rg\nh")
    append_trace(tmp_path / "log.jsonl", odd)
    assert list(read_traces(tmp_path / "log.jsonl")) == [odd]


def test_reading_is_lazy_and_names_file_line_and_record(tmp_path):
    path = tmp_path / "traces.jsonl"
    path.write_bytes(format_trace(TRACE) + b"\n" + line(id="t-2", labelled="yes") + b"\n")
    reader = read_traces(path)
    assert next(reader) == TRACE
    with pytest.raises(TraceError) as caught:
        next(reader)
    assert str(caught.value).startswith(f"{path}:3: trace 't-2': labelled: ")


def test_an_id_must_not_come_twice(tmp_path):
    path = tmp_path / "traces.jsonl"
    path.write_bytes(b"\n" + format_trace(TRACE) + format_trace(replace(TRACE, answer="x" * 30)))
    with pytest.raises(TraceError) as caught:
        list(read_traces(path))
    assert str(caught.value) == f"{path}:3: trace 't-1': the id stands in line 2"


def test_an_unreadable_file_is_named(tmp_path):
    broken = tmp_path / "broken.jsonl.gz"
    broken.write_bytes(gzip.compress(format_trace(TRACE))[:-20])
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(b"\x1f\x8b\x08\x00" + b"\x00" * 6 + b"\xff" * 40)
    for path in (tmp_path / "missing.jsonl", tmp_path, broken, damaged):
        with pytest.raises(TraceError, match="cannot be read") as caught:
            list(read_traces(path))
        assert str(caught.value).startswith(f"{path}: ")


def test_an_empty_file_holds_no_traces(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    assert list(read_traces(tmp_path / "empty.jsonl")) == []


# Writing files


def test_appending_repairs_a_torn_last_line(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(format_trace(TRACE).rstrip(b"\n"))
    append_trace(path, replace(TRACE, id="t-2"))
    assert [trace.id for trace in read_traces(path)] == ["t-1", "t-2"]
    path.write_bytes(format_trace(TRACE) + b'{"id":"torn')
    append_trace(path, replace(TRACE, id="t-3"))
    assert path.read_bytes().split(b"\n")[1] == b'{"id":"torn'
    assert parse_trace(path.read_bytes().split(b"\n")[2]).id == "t-3"


def append_many(path, writer, count):
    for number in range(count):
        append_trace(path, replace(TRACE, id=f"{writer}-{number}", question="q" * 20_000))


def test_concurrent_appenders_do_not_mix_their_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(format_trace(TRACE).rstrip(b"\n"))
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    writers = [context.Process(target=append_many, args=(path, n, 25)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert all(writer.exitcode == 0 for writer in writers)
    ids = {trace.id for trace in read_traces(path)}
    assert ids == {"t-1"} | {f"{writer}-{number}" for writer in range(4) for number in range(25)}


def test_appending_says_why_it_cannot(tmp_path):
    with pytest.raises(TraceError, match="trace 't-1' cannot be appended: No such file"):
        append_trace(tmp_path / "missing" / "log.jsonl", TRACE)
    with pytest.raises(TraceError, match="gzipped files are only read"):
        append_trace(tmp_path / "log.jsonl.gz", TRACE)
    assert not list(tmp_path.iterdir())


FULL_DISK = """
import resource, signal, sys
from critic.trace import TraceError, append_trace, read_traces
path = sys.argv[1]
trace = next(read_traces(path))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    append_trace(path, trace)
except TraceError as error:
    sys.exit(str(error))
"""


def test_a_line_that_only_fits_in_part_is_an_error(tmp_path):
    path = tmp_path / "log.jsonl"
    append_trace(path, replace(TRACE, question="q" * 500))
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "bytes fitted" in done.stderr and "Traceback" not in done.stderr


def test_a_failed_rewrite_leaves_the_old_file(tmp_path):
    path = tmp_path / "traces.jsonl"
    write_traces(path, numbered(2))
    unwritable = replace(TRACE, turn={"score": float("nan")})
    with pytest.raises(TraceError, match="cannot be written as JSON"):
        write_traces(path, [TRACE, unwritable])
    assert list(read_traces(path)) == numbered(2)
    assert [entry.name for entry in tmp_path.iterdir()] == ["traces.jsonl"]
    with pytest.raises(TraceError, match="cannot be written: No such file"):
        write_traces(tmp_path / "missing" / "traces.jsonl", numbered(2))
    with pytest.raises(TraceError, match="gzipped files are only read"):
        write_traces(tmp_path / "traces.jsonl.gz", numbered(2))


# Overlaps

spans = st.lists(
    st.builds(
        lambda start, length, label: Span(start, start + length, label),
        st.integers(0, 30),
        st.integers(1, 8),
        st.sampled_from("abc"),
    ),
    max_size=8,
)


@given(spans)
def test_merging_keeps_every_character_and_no_overlap(given_spans):
    merged, num_merged = merge_overlaps(given_spans)
    covered = {at for span in given_spans for at in range(span.start, span.end)}
    places = [at for span in merged for at in range(span.start, span.end)]
    assert sorted(covered) == places
    assert num_merged == len(given_spans) - len(merged)
    assert merge_overlaps(merged) == (merged, 0)
    for span in merged:
        parts = {s.label for s in given_spans if span.start <= s.start and s.end <= span.end}
        assert set(span.label.split(" + ")) == parts


def test_spans_that_touch_stay_apart():
    touching = (Span(0, 3, "a"), Span(3, 5, "b"))
    assert merge_overlaps(reversed(touching)) == (touching, 0)


def test_nested_and_doubled_spans_become_one():
    nested = [Span(0, 15, "part"), Span(6, 10, "subpart|due_to_null"), Span(0, 15, "part")]
    assert merge_overlaps(nested) == ((Span(0, 15, "part + subpart|due_to_null"),), 2)


def test_the_record_knows_no_heavy_library():
    heavy = "{'torch', 'transformers', 'flare_runtime', 'training'}"
    code = f"import sys, critic.trace; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
