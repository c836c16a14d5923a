"""``flare-train validate``: counts on stdout, every problem on stderr."""

import gzip
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from critic import Span, Trace, TracePassage
from critic.trace import TraceError, format_trace, write_traces
from flare_runtime.errors import ConfigError, FlareError
from training.cli import build_parser, main
from training.validate import validate_traces

TRACE = Trace(
    id="t-1",
    group="g-1",
    split="train",
    source="demo",
    license="CC0-1.0",
    generator="tiny",
    question="Where does it run?",
    passages=(TracePassage("p-1", "It runs on port 8080."),),
    answer="It runs on port 8080. It was built in Oslo. Nobody uses it.",
    labelled=True,
    unsupported=(),
)
OSLO = Span(22, 43, "baseless")


@pytest.fixture
def train(tmp_path):
    path = tmp_path / "train.jsonl"
    write_traces(
        path,
        [
            replace(TRACE, unsupported=(OSLO, Span(26, 30, "baseless"), Span(38, 50, "conflict"))),
            replace(TRACE, id="t-2", labelled=False),
            replace(TRACE, id="t-3", group="g-2", unsupported=(Span(21, 22, "a blank"),)),
        ],
    )
    return path


def test_counts_of_a_sound_file(train, capsys):
    assert main(["validate", str(train), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {
        "files": [
            {
                "path": str(train),
                "traces": 3,
                "labelled": 2,
                "groups": 2,
                "sentences": 9,
                "unsupported_sentences": 2,
                "spans": 4,
                "merged_overlaps": 2,
            }
        ],
        "problems": [],
    }


def test_counts_for_people(train, capsys):
    assert main(["validate", str(train)]) == 0
    out, err = capsys.readouterr()
    assert out == (
        f"{train}: 3 traces (2 labelled) in 2 groups, 9 sentences (2 unsupported), "
        "4 spans (2 merged)\n"
    )
    assert err == ""


def test_gzip_gives_the_same_counts(train, tmp_path):
    packed = tmp_path / "train.jsonl.gz"
    packed.write_bytes(gzip.compress(train.read_bytes()))
    plain, zipped = (validate_traces([path]) for path in (train, packed))
    assert replace(zipped.files[0], path=plain.files[0].path) == plain.files[0]
    assert zipped.problems == ()


def test_every_problem_is_told_and_the_sound_lines_are_counted(train, tmp_path, capsys):
    bad = tmp_path / "bad.jsonl"
    lines = [
        b"not json",
        format_trace(replace(TRACE, id="t-4")),
        format_trace(replace(TRACE, id="t-5")).replace(b'"labelled":true', b'"labelled":"yes"'),
        format_trace(replace(TRACE, id="t-4")),
        format_trace(replace(TRACE, id="t-2")),
        format_trace(replace(TRACE, id="t-6", split="dev")),
    ]
    bad.write_bytes(b"\n".join(line.rstrip() for line in lines))
    assert main(["validate", str(train), str(bad)]) == 1
    out, err = capsys.readouterr()
    first, second, third, fourth, fifth = err.splitlines()
    assert first.startswith(f"{bad}:1: invalid JSON")
    assert second.startswith(f"{bad}:3: trace 't-5': labelled: ")
    assert third == f"{bad}:4: trace 't-4': the id stands at {bad}:2 already"
    assert fourth == f"{bad}:5: trace 't-2': the id stands at {train}:2 already"
    assert fifth == (f"group 'g-1' must be in one split, was in: train ({train}:1), dev ({bad}:6)")
    assert f"{bad}: 4 traces" in out


def test_problems_are_in_the_json_too(tmp_path, capsys):
    assert main(["validate", str(tmp_path / "none.jsonl"), "--json"]) == 1
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["files"][0]["traces"] == 0
    assert report["problems"] == err.splitlines()
    none = tmp_path / "none.jsonl"
    assert report["problems"] == [f"{none}: cannot be read: No such file or directory"]


@pytest.mark.parametrize("content", [b"", b"\n \n", gzip.compress(b"")])
def test_an_empty_file_is_a_problem(tmp_path, content):
    (tmp_path / "empty.jsonl").write_bytes(content)
    report = validate_traces([tmp_path / "empty.jsonl"])
    assert report.problems == (f"{tmp_path / 'empty.jsonl'}: holds no traces",)


def test_a_file_cut_short_is_a_problem_and_its_head_is_counted(tmp_path):
    path = tmp_path / "cut.jsonl.gz"
    many = b"".join(format_trace(replace(TRACE, id=f"t-{n}", question=f"{n}")) for n in range(900))
    path.write_bytes(gzip.compress(many)[:-30])
    report = validate_traces([path])
    assert 0 < report.files[0].traces < 900
    assert len(report.problems) == 1 and "cannot be read" in report.problems[0]


def test_a_group_nobody_has_split_yet_is_not_mixed(tmp_path):
    path = tmp_path / "traces.jsonl"
    write_traces(path, [TRACE, replace(TRACE, id="t-2", split="")])
    assert validate_traces([path]).problems == ()


def test_a_file_named_twice_is_read_once(train):
    report = validate_traces([train, str(train)])
    assert len(report.files) == 1 and report.problems == ()


@pytest.mark.parametrize("argv", [[], ["validate"], ["validate", "x", "--yaml"], ["guess"]])
def test_bad_arguments_exit_with_2(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (FlareError("no index"), 1, "flare-train: no index\n"),
        (TraceError("no trace"), 1, "flare-train: no trace\n"),
        (ConfigError("no such key"), 2, "flare-train: no such key\n"),
        (KeyboardInterrupt(), 130, "flare-train: interrupted\n"),
    ],
)
def test_a_failing_verb_is_one_line(error, code, said, capsys, monkeypatch):
    def fail(args):
        raise error

    monkeypatch.setattr("training.cli.run_validate", fail)
    assert main(["validate", "x"]) == code
    assert capsys.readouterr() == ("", said)


def test_help_names_the_verbs():
    assert "validate" in build_parser().format_help()


def test_the_command_line_loads_no_heavy_library():
    heavy = "{'torch', 'transformers'}"
    code = (
        "import sys; from training.cli import main; main(['validate', 'none']); "
        f"sys.exit(bool({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
