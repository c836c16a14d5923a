"""Answers that transformers wrote in fp32, run through the other engines token by token.

``pytest --update-golden`` has transformers write them anew.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from flare_runtime.config import ModelConfig
from flare_runtime.export import build
from flare_runtime.language_model import LanguageModel, Message
from flare_runtime.opening import load_model

GOLDEN = Path(__file__).parents[2] / "golden" / "answers.jsonl"
HARBOR = Path(__file__).parents[3] / "data" / "harbor"
NUM_ANSWERS = 50
MAX_TOKENS = 32

pytestmark = pytest.mark.real_model


def prompts(model: LanguageModel) -> list[tuple[int, ...]]:
    """A question with the beginning of a page of the demo corpus, fifty of them."""
    lines = (HARBOR / "demo-questions.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [(row["question"], row["gold"][0]) for row in map(json.loads, lines) if row["gold"]]
    pages = sorted(path.relative_to(HARBOR / "docs") for path in HARBOR.glob("docs/**/*.md"))
    asked += [("What does this page say?", str(page)) for page in pages]
    texts = [
        f"{(HARBOR / 'docs' / page).read_text(encoding='utf-8')[:500]}\n\nQuestion: {question}"
        for question, page in asked[:NUM_ANSWERS]
    ]
    return [model.encode(model.render([Message("user", text)])) for text in texts]


def write(model: LanguageModel, prompt: tuple[int, ...]) -> list[int]:
    cache = model.new_cache()
    output = model.forward(prompt, cache)
    written: list[int] = []
    while len(written) < MAX_TOKENS:
        token = int(output.logits[-1].argmax())
        if token in model.stop_ids:
            break
        written.append(token)
        output = model.forward((token,), cache)
    return written


@pytest.fixture(scope="module")
def answers(update_golden: bool) -> list[list[int]]:
    if update_golden:
        settings = ModelConfig(engine="transformers", dtype="float32")
        reference = load_model("smollm2-135m", settings)
        written = [write(reference, prompt) for prompt in prompts(reference)]
        GOLDEN.write_text("".join(json.dumps(answer) + "\n" for answer in written))
    return [json.loads(line) for line in GOLDEN.read_text().splitlines()]


def agreement(model: LanguageModel, answers: list[list[int]]) -> tuple[float, int]:
    """Share of tokens that the engine finds most probable, and answers it agrees with whole."""
    agreed = []
    for prompt, answer in zip(prompts(model), answers, strict=True):
        output = model.forward((*prompt, *answer[:-1]), model.new_cache(), (), len(answer))
        agreed.append(output.logits.argmax(axis=-1) == np.array(answer))
    return float(np.mean(np.concatenate(agreed))), sum(bool(same.all()) for same in agreed)


def test_in_fp32_every_token_is_the_same(answers: list[list[int]], tmp_path: Path) -> None:
    folder = build("smollm2-135m", "fp32", tmp_path / "graph")
    share, whole = agreement(load_model(str(folder)), answers)
    assert len(answers) == NUM_ANSWERS
    assert whole == NUM_ANSWERS
    assert share == 1.0


def test_in_int8_nearly_every_token_is_the_same(answers: list[list[int]]) -> None:
    model = load_model("smollm2-135m", ModelConfig(engine="onnx", precision="int8"))
    assert agreement(model, answers)[0] >= 0.97
