"""The README's tree is made from the first docstring line of each module; its commands parse."""

import ast
import re
import shlex
from pathlib import Path

import pytest

from flare_runtime.cli import build_parser, main
from flare_runtime.model_store import models_root

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PACKAGES = ("critic", "flare_runtime", "training")
OTHERS = {
    "data/harbor/": "the demo corpus: a fictional handbook, its codenames and questions",
    "models/base/": "base models, pulled by content, not in the repository",
    "tests/": "mirrors the packages; golden/ event files, cases/ from bug reports, benchmarks/",
}
WIDTH = 32


def first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, f"{path} says nothing of its job"
    return docstring.splitlines()[0].rstrip(".")


def listed(folder: Path, depth: int) -> list[str]:
    indent = "  " * depth
    lines = [f"{indent + folder.name + '/':{WIDTH}}{first_line(folder / '__init__.py')}"]
    for path in sorted(folder.iterdir(), key=lambda p: (p.is_dir(), p.name)):
        if path.is_dir() and (path / "__init__.py").exists():
            lines += listed(path, depth + 1)
        elif path.suffix == ".py" and not path.name.startswith("__"):
            lines.append(f"{'  ' * (depth + 1) + path.name:{WIDTH}}{first_line(path)}")
    return lines


def tree() -> str:
    lines = [line for package in PACKAGES for line in listed(ROOT / package, 0)]
    lines += [f"{name:{WIDTH}}{job}" for name, job in OTHERS.items()]
    return "\n".join(lines)


def test_the_tree_is_the_tree(update_golden: bool) -> None:
    text = README.read_text(encoding="utf-8")
    block = re.compile(r"(## The tree\n\n```\n).*?(\n```)", re.DOTALL)
    if update_golden:
        text = block.sub(lambda match: match[1] + tree() + match[2], text)
        README.write_text(text, encoding="utf-8")
    found = block.search(text)
    assert found is not None
    assert found[0] == f"{found[1]}{tree()}{found[2]}"


def commands() -> list[str]:
    blocks = re.findall(r"```\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [part for part in parts if re.match(r"(\$ )?(\.venv/bin/)?flare ", part)]


def test_there_are_commands_to_check() -> None:
    assert len(commands()) >= 5


@pytest.mark.parametrize("command", commands())
def test_every_command_in_the_readme_parses(command: str) -> None:
    words = shlex.split(command.removeprefix("$ "), comments=True)
    assert build_parser().parse_args(words[1:]).run is not None


@pytest.mark.real_model
def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Payments\n\nRoll payments out to staging with helm.\n")
    monkeypatch.setenv("FLARE_MODELS", str(models_root()))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flare.toml").write_text("[decode]\nmax_new_tokens = 4\n[model]\nthreads = 1\n")
    assert main(["index", "docs", "-o", "my-index", "--set", "model.threads=1"]) == 0
    seen: list[str] = []
    exec(example[1], {"print": lambda event: seen.append(type(event).__name__)})
    assert seen[0] == "FirstHop"
    assert seen[-1] == "Finished"
