"""An answer in which no trigger fires, against plain ``generate`` of the same tokens.

Both get the same prompt, write the same tokens greedily on the same model, and run in turn; the
search is left out on both sides. Prints one JSON object.
"""

import argparse
import json
import resource
import statistics
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from flare_runtime.engine import FlareEngine
from flare_runtime.model_store import resolve_model
from flare_runtime.opening import load_model
from flare_runtime.settings import load_config
from flare_runtime.types import Hit, Passage

QUESTIONS = Path("data/harbor/demo-questions.jsonl")
PAGES = Path("data/harbor/docs")
NEVER_FIRES = ["trigger.when=all(min_logprob, entropy)", "trigger.min_logprob=-1000"]


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


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64)
    args = parser.parse_args()
    overrides = [
        *NEVER_FIRES,
        f"decode.max_new_tokens={args.tokens}",
        f"model.threads={args.threads}",
        "decode.stop_on_repeat=false",
        "model.dtype=float32",
    ]
    config = load_config(None, {}, overrides)
    model = load_model(config.model.name, config.model)
    plain = AutoModelForCausalLM.from_pretrained(
        resolve_model(config.model.name, "generator"), dtype=torch.float32
    ).eval()
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    ratios = []
    for row in [row for row in rows if row["gold"]][: args.questions]:
        engine = FlareEngine(model, OnePage(PAGES / row["gold"][0]), config)
        began = time.perf_counter()
        turn = engine.answer(row["question"])
        ours = time.perf_counter() - began
        theirs = timed_generate(plain, model, config, row, turn.usage.decoded_tokens)
        ratios.append(ours / theirs)
    print(
        json.dumps(
            {
                "untriggered_ratio": round(statistics.median(ratios), 3),
                "spread": [round(min(ratios), 3), round(max(ratios), 3)],
                "questions": len(ratios),
                "threads": args.threads,
                "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
    )


def timed_generate(plain, model, config, row, num_tokens):
    """Seconds that ``generate`` takes for the same prompt and as many tokens."""
    from flare_runtime.answer import Answer
    from flare_runtime.stopwatch import Stopwatch

    page = OnePage(PAGES / row["gold"][0])
    answer = Answer(model, config, (), row["question"], (), Stopwatch())
    answer.open([hit.passage for hit in page.search("", 1)])
    ids = torch.tensor([answer.prefix])
    began = time.perf_counter()
    plain.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=num_tokens,
        min_new_tokens=num_tokens,
        do_sample=False,
    )
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
