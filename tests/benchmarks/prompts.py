"""Prompts of the demo corpus: a question with the page that answers it."""

import json
from pathlib import Path

from flare_runtime.answer import Answer
from flare_runtime.config import FlareConfig
from flare_runtime.language_model import LanguageModel
from flare_runtime.stopwatch import Stopwatch
from flare_runtime.types import Hit, Passage

HARBOR = Path(__file__).parents[2] / "data" / "harbor"


class OnePage:
    """Finds one page, at once."""

    is_remote = False
    num_passages = 1

    def __init__(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        self._hit = Hit(Passage(path.stem, text, path.stem, path.name, 0, len(text)), 1.0, 1)

    def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
        """Return the page."""
        return (self._hit,)


def questions(limit: int) -> list[tuple[str, OnePage]]:
    """The first questions of the demo corpus that it answers, each with its first page."""
    lines = (HARBOR / "demo-questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["gold"]]
    return [(row["question"], OnePage(HARBOR / "docs" / row["gold"][0])) for row in rows[:limit]]


def prompt_ids(
    model: LanguageModel, config: FlareConfig, question: str, page: OnePage
) -> tuple[int, ...]:
    """The prompt that opens an answer from this page."""
    answer = Answer(model, config, (), question, (), Stopwatch())
    answer.open([hit.passage for hit in page.search(question, 1)])
    return tuple(answer.prefix)
