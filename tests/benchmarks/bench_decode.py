"""Decoding by every engine, the same tokens after the same prompts, in turn within one run.

Writes ``decode`` into ``results.json``: milliseconds a token, prefill seconds, and how many times
as fast as each other engine ours is (median over questions of the ratio of medians over steps).
"""

import argparse
import statistics
from pathlib import Path

import torch
from engines import GenaiLoop, LlamaLoop, Loop, OurLoop, Timing
from machine import write_result
from prompts import prompt_ids, questions

from flare_runtime.config import FlareConfig, ModelConfig
from flare_runtime.model_store import resolve_model
from flare_runtime.opening import load_model

MODEL = "smollm2-135m"
OURS = "onnx_int8"


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--llama", nargs=2, type=Path, metavar=("PYTHON", "GGUF"), help="compare llama.cpp as well"
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    ours = load_model(MODEL, ModelConfig(engine="onnx", threads=args.threads))
    loops: dict[str, Loop] = {OURS: OurLoop(ours)}
    for dtype in ("float32", "bfloat16"):
        settings = ModelConfig(engine="transformers", dtype=dtype, threads=args.threads)
        loops[f"transformers_{dtype}"] = OurLoop(load_model(MODEL, settings))
    loops["genai_loop_int8"] = GenaiLoop(resolve_model(MODEL, "generator"), args.threads)
    if args.llama:
        loops["llama_cpp"] = LlamaLoop(*args.llama, args.threads)
    rows = []
    for question, page in questions(args.questions):
        prompt = prompt_ids(ours, FlareConfig(), question, page)
        tokens = greedy(ours, prompt, args.tokens)
        rows.append({name: loop.run(prompt, tokens) for name, loop in loops.items()})
    write_result("decode", summary(rows, loops, args))


def greedy(model, prompt: tuple[int, ...], count: int) -> list[int]:
    """What our engine writes: the tokens that every engine then runs."""
    cache = model.new_cache()
    output = model.forward(prompt, cache)
    tokens = []
    for _ in range(count):
        tokens.append(int(output.logits[-1].argmax()))
        output = model.forward((tokens[-1],), cache)
    return tokens


def step_ms(timing: Timing) -> float:
    """Median milliseconds of a step."""
    return 1e3 * statistics.median(timing.steps)


def summary(rows: list[dict[str, Timing]], loops: dict[str, Loop], args) -> dict[str, object]:
    """Figures of each engine, and ours against it."""
    figures: dict[str, object] = {
        "model": MODEL,
        "questions": len(rows),
        "tokens": args.tokens,
        "threads": args.threads,
    }
    for name in loops:
        steps = [step_ms(row[name]) for row in rows]
        figures[name] = {
            "decode_ms": round(statistics.median(steps), 2),
            "decode_ms_spread": [round(min(steps), 2), round(max(steps), 2)],
            "prefill_s": round(statistics.median(row[name].prefill for row in rows), 3),
        }
        if name != OURS:
            ratios = [step_ms(row[name]) / step_ms(row[OURS]) for row in rows]
            figures[f"decode_vs_{name}"] = round(statistics.median(ratios), 2)
            figures[f"decode_vs_{name}_spread"] = [round(min(ratios), 2), round(max(ratios), 2)]
    return figures


if __name__ == "__main__":
    main()
