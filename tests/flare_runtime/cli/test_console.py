import io
import sys

import pytest

from flare_runtime.cli.console import progress
from flare_runtime.cli.units import readable_size


def test_without_a_terminal_progress_is_a_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("docs") as report:
        for done in range(101):
            report("embed", done, 100)
            report("embed", done, 100)
        report("save", 0, 0)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "docs embed: 0 of 100",
        "docs embed: 25 of 100",
        "docs embed: 50 of 100",
        "docs embed: 75 of 100",
        "docs embed: 100 of 100",
        "docs save: 0 of 0",
    ]


def test_bytes_are_shown_as_people_read_them(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(in_bytes=True) as report:
        report("download", 1_500_000, 92_900_000)
    assert capsys.readouterr().err == "download: 1.5 MB of 92.9 MB\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("in_bytes", [False, True])
def test_on_a_terminal_there_are_bars(monkeypatch: pytest.MonkeyPatch, in_bytes: bool) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress("model", in_bytes) as report:
        report("download", 1, 2)
        report("download", 2, 2)
    assert "model download" in terminal.getvalue()


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (92_871_040, "92.9 MB"), (5 * 10**9, "5.0 GB")],
)
def test_sizes(size: int, text: str) -> None:
    assert readable_size(size) == text
