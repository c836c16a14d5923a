"""An answer in which no trigger fires, against the bare decode loop of the same tokens.

Same prompt, same tokens, same engine, in turn; the search is left out on both sides.
Writes ``untriggered`` into ``results.json``.
"""

import argparse
import resource
import statistics
import time

from machine import write_result
from prompts import OnePage, prompt_ids, questions

from flare_runtime.engine import FlareEngine
from flare_runtime.opening import load_model
from flare_runtime.settings import load_config

NEVER_FIRES = ["trigger.when=all(min_logprob, entropy)", "trigger.min_logprob=-1000"]


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--engine", default="onnx")
    args = parser.parse_args()
    overrides = [
        *NEVER_FIRES,
        f"decode.max_new_tokens={args.tokens}",
        f"model.threads={args.threads}",
        f"model.engine={args.engine}",
        "decode.stop_on_repeat=false",
    ]
    config = load_config(None, {}, overrides)
    model = load_model(config.model.name, config.model)
    ratios, seconds = [], []
    for question, page in questions(args.questions):
        ours, turn = timed_answer(model, config, question, page)
        bare = timed_loop(model, config, question, page, turn.usage.decoded_tokens)
        again, _ = timed_answer(model, config, question, page)
        ratios.append(min(ours, again) / bare)
        seconds.append(min(ours, again))
    write_result(
        "untriggered",
        {
            "engine": model.engine,
            "untriggered_ratio": round(statistics.median(ratios), 3),
            "spread": [round(min(ratios), 3), round(max(ratios), 3)],
            "answer_s": round(statistics.median(seconds), 2),
            "questions": len(ratios),
            "threads": args.threads,
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        },
    )


def timed_answer(model, config, question: str, page: OnePage):
    """Seconds of a whole answer, and its turn log."""
    engine = FlareEngine(model, page, config)
    began = time.perf_counter()
    turn = engine.answer(question)
    return time.perf_counter() - began, turn


def timed_loop(model, config, question: str, page: OnePage, num_tokens: int) -> float:
    """Seconds to prefill the same prompt and decode as many tokens with nothing around it.

    The fastest of two, as for the answer.
    """
    prompt = prompt_ids(model, config, question, page)
    runs = []
    for _ in range(2):
        cache = model.new_cache()
        began = time.perf_counter()
        output = model.forward(prompt, cache)
        for _ in range(num_tokens):
            output = model.forward((int(output.logits[-1].argmax()),), cache)
        runs.append(time.perf_counter() - began)
    return min(runs)


if __name__ == "__main__":
    main()
