"""The command line end to end, with the real generator and embedder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from critic.trace import read_traces
from flare_runtime.cli import main

pytestmark = pytest.mark.real_model

PAGES = {
    "runbook.md": (
        "# Roll out payments\n\nTo roll out payments, run the rollout from the host deploy-two. "
        "Use the current values file of Ledgerline.\n"
    ),
    "release.md": (
        "# Ledgerline release\n\nThe staging values file for Ledgerline is values-staging.yaml.\n"
    ),
    "holidays.txt": "Every employee gets 29 days of holiday a year.\n",
}
FAST = ["--set", "model.threads=1", "--set", "decode.max_new_tokens=24"]
QUESTION = "How many days of holiday does an employee get?"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "image.png").write_bytes(b"\x89PNG")
    (folder / "empty.md").write_bytes(b"")
    output = folder.parent / "index"
    assert main(["index", str(folder), "-o", str(output), "--set", "model.threads=1"]) == 0
    return output


def ask(index: Path, *arguments: str) -> int:
    return main(["ask", QUESTION, "--index", str(index), *FAST, *arguments])


def test_index_reports_what_it_did_and_skipped(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = next(index.parent.glob("docs*"))
    assert main(["index", str(folder), "-o", str(index)]) == 0
    shown = capsys.readouterr()
    assert "from 3 files" in shown.out
    assert "3 files unchanged" in shown.out
    assert "(0 embedded" in shown.out
    assert "skipped empty.md" in shown.err
    assert "skipped image.png" in shown.err
    assert main(["index", str(folder), "-o", str(index), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["num_files"] == 3
    assert {skipped["source"] for skipped in report["skipped"]} == {"empty.md", "image.png"}


def test_search_finds_and_explains(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = ["search", "staging values file", "--index", str(index)]
    assert main(query) == 0
    assert capsys.readouterr().out.startswith("1. release.md")
    assert main([*query, "--explain", "-k", "1"]) == 0
    explained = capsys.readouterr().out
    assert "dense 1" in explained
    assert "sparse 1" in explained
    assert "fused 1" in explained
    assert main([*query, "--json"]) == 0
    candidates = json.loads(capsys.readouterr().out)["candidates"]
    assert candidates[0]["passage"]["source"] == "release.md"


def test_search_without_hits_says_so_by_its_exit_code(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", "   ", "--index", str(index)]) == 3
    assert capsys.readouterr().out == ""


def test_the_answer_goes_to_stdout(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(index, "--trigger", "never") == 0
    shown = capsys.readouterr()
    assert "29 days" in shown.out
    assert shown.out.endswith("\n")
    assert shown.err == ""


def test_json_is_the_turn_log(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(index, "--json", "--trigger", "never") == 0
    shown = capsys.readouterr()
    (line,) = shown.out.splitlines()
    turn = json.loads(line)
    assert turn["format"] == "flare-turn/1"
    assert turn["config"]["trigger"]["when"] == "never"
    assert turn["outcome"] == "answered"
    assert "".join(turn["answer"][t["start"] : t["end"]] for t in turn["tokens"]) == turn["answer"]


def test_a_lookup_shows_on_stderr(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = ask(
        index, "--trigger", "every_n_sentences", "--set", "retrieval.top_k=1",
        "--set", "abstain.mode=off", "--set", "retrieval.min_relevance=0",
    )  # fmt: skip
    shown = capsys.readouterr()
    assert code == 0
    assert f"Looking up… {QUESTION}" in shown.err
    assert "new" in shown.err
    assert "Looking up" not in shown.out


def test_in_one_file_a_lookup_starts_a_line_of_its_own(index: Path, tmp_path: Path) -> None:
    arguments = [
        "ask", QUESTION, "--index", str(index), *FAST, "--trigger", "every_n_sentences",
        "--set", "trigger.every_n_sentences=2", "--set", "decode.boundary=clause",
        "--set", "decode.max_draft_tokens=1", "--set", "retrieval.top_k=1",
        "--set", "decode.stop_on_repeat=false", "--set", "retrieval.min_relevance=0",
        "--set", "model.engine=transformers",  # which writes two clauses here
    ]  # fmt: skip
    both = tmp_path / "both.txt"
    with both.open("w") as file:
        code = subprocess.run(
            [sys.executable, "-m", "flare_runtime.cli", *arguments], stdout=file, stderr=file
        ).returncode
    lines = both.read_text(encoding="utf-8").splitlines()
    assert code == 0
    assert any("Looking up" in line for line in lines)
    assert all(line.startswith("Looking up") for line in lines if "Looking up" in line)


def test_no_lookup_means_none(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(index, "--trigger", "every_n_sentences", "--no-lookup", "--json")
    assert json.loads(capsys.readouterr().out)["lookups"] == []


@pytest.mark.parametrize(("mode", "code"), [("answer", 3), ("escalate", 4)])
def test_exit_codes_tell_the_outcome(
    index: Path, mode: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    unsure = ["--trigger", "min_logprob", "--set", "trigger.min_logprob=0"]
    capped = ["--set", "lookup.max_per_answer=0", "--set", "trigger.whitelist=false"]
    assert ask(index, *unsure, *capped, "--set", f"abstain.mode={mode}") == code
    assert "cannot verify" in capsys.readouterr().out


def test_a_turn_is_recorded_as_a_trace(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "traces.jsonl"
    for _ in range(2):
        ask(index, "--trigger", "never", "--record", str(file))
    answer = capsys.readouterr().out.splitlines()[0]
    first, second = read_traces(file)
    assert first.answer == second.answer == answer
    assert first.group == second.group
    assert first.id != second.id
    assert not first.labelled
    assert first.question == QUESTION
    assert any("29 days" in passage.text for passage in first.passages)
    assert first.turn is not None
    assert first.turn["id"] == first.id


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["ask", " ", "-i", "{index}"], 2, "the question must not be empty"),
        (["ask", "x", "-i", "{index}", "--trigger", "magic"], 2, "unknown trigger 'magic'"),
        (["ask", "x", "-i", "{index}", "--set", "decode.seeds=1"], 2, "unknown setting"),
        (["ask", "x", "-i", "{index}", "-c", "none.toml"], 2, "cannot read the configuration"),
        (["ask", "x", "-i", "{index}", "--trigger", "critic"], 1, "needs critic"),
        (["ask", "x", "-i", "{index}", "--model", "no-such"], 1, "no-such"),
        (["ask", "x", "-i", "nowhere"], 1, "flare index"),
        (["ask", "why " * 9000, "-i", "{index}"], 1, "prompt alone exceeds"),
        (["search", "x", "-i", "{index}", "-k", "0"], 2, "must be at least 1, was: 0"),
        (["search", "x", "-i", "nowhere"], 1, "flare index"),
        (["index", "nowhere", "-o", "{index}-2"], 1, "nowhere"),
        (["index", "data/harbor/docs/faq", "-o", "README.md/x"], 1, "cannot make the folder"),
        (["models", "pull", "no-such"], 1, "no-such"),
    ],
)
def test_a_mistake_is_one_line(
    index: Path,
    arguments: list[str],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    filled = [argument.replace("{index}", str(index)) for argument in arguments]
    assert main(filled) == code
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert line.startswith("flare: ")
    assert message in line
    assert shown.out == ""


def test_a_trace_file_that_cannot_be_written_loses_no_answer(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(index, "--trigger", "never", "--record", str(tmp_path)) == 1
    shown = capsys.readouterr()
    assert "29 days" in shown.out
    assert shown.err.startswith("flare: ")


@pytest.mark.parametrize("arguments", [[], ["ask"], ["ask", "x"], ["fly"], ["models"]])
def test_bad_arguments_exit_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2


def test_config_prints_what_is_in_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "flare.toml"
    file.write_text("[decode]\nseed = 5\n", encoding="utf-8")
    monkeypatch.setenv("FLARE_DECODE__TOP_P", "0.5")
    assert main(["config", "-c", str(file), "--set", "decode.temperature=0.5"]) == 0
    text = capsys.readouterr().out
    assert "seed = 5" in text
    assert "top_p = 0.5" in text
    assert "temperature = 0.5" in text
    assert main(["config", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["decode"]["top_p"] == 0.5


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("smollm2-135m") and line.endswith(" pulled") for line in lines)
    assert not any("not pulled" in line for line in lines)
    assert main(["models", "list", "--json"]) == 0
    names = [status["name"] for status in json.loads(capsys.readouterr().out)]
    assert names == ["smollm2-135m", "all-minilm-l6-v2"]


def test_pull_skips_what_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "pull"]) == 0
    assert capsys.readouterr().err.count("ready in") == 2


def test_it_runs_as_a_process_and_imports_no_model_for_help() -> None:
    code = "import sys, flare_runtime.cli as c\ntry: c.main(['--help'])\nexcept SystemExit: pass\n"
    check = (
        code + "print(sorted({'torch', 'transformers', 'faiss', 'pydantic'} & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True
    )
    assert shown.stdout.rstrip().endswith("[]")
    version = subprocess.run(
        [sys.executable, "-m", "flare_runtime.cli", "models", "list"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    assert "smollm2-135m" in version.stdout


def test_on_graphs_an_answer_imports_neither_torch_nor_transformers(index: Path) -> None:
    program = """
import sys
from flare_runtime.cli import main
code = main(sys.argv[1:])
print(code, sorted({"torch", "transformers", "onnx"} & set(sys.modules)))
"""
    shown = subprocess.run(
        [sys.executable, "-c", program, "ask", QUESTION, "--index", str(index), *FAST],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.splitlines()[-1] == "0 []", shown.stderr


def test_a_closed_pipe_is_no_traceback(index: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    shown = subprocess.run(
        [sys.executable, "-m", "flare_runtime.cli", "config"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    assert shown.returncode != 0
    assert "Traceback" not in shown.stderr


def run_on_a_full_disk(arguments: list[str]) -> "subprocess.CompletedProcess[str]":
    with Path("/dev/full").open("w") as full:
        return subprocess.run(
            [sys.executable, "-m", "flare_runtime.cli", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.mark.parametrize("arguments", [["config"], ["models", "list", "--json"]])
def test_a_full_disk_is_one_line(arguments: list[str]) -> None:
    shown = run_on_a_full_disk(arguments)
    assert shown.returncode == 1
    (line,) = shown.stderr.splitlines()
    assert "No space left" in line


def test_a_full_disk_costs_no_trace(index: Path, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    arguments = ["ask", QUESTION, "--index", str(index), *FAST, "--json", "--record", str(file)]
    shown = run_on_a_full_disk(arguments)
    assert shown.returncode == 1
    assert "Traceback" not in shown.stderr
    assert len(list(read_traces(file))) == 1


def test_a_terminal_that_is_not_utf8_is_no_traceback(index: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "flare_runtime.cli", "search", "payments", "-i", str(index)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert shown.stdout.startswith("1. ")


def test_a_question_that_is_not_utf8_is_answered(index: Path) -> None:
    question = os.fsdecode(b"How many days \xff of holiday?")
    shown = subprocess.run(
        [sys.executable, "-m", "flare_runtime.cli", "ask", question, "-i", str(index), *FAST],
        capture_output=True,
        text=True,
    )
    assert shown.returncode in (0, 3)
    assert "Traceback" not in shown.stderr


def test_without_stderr_errors_do_not_land_in_the_answer() -> None:
    command = f"{sys.executable} -m flare_runtime.cli ask x -i nowhere 2>&-"
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (shown.returncode, shown.stdout) == (1, "")
