"""What a step costs as the context grows, against reading its keys and values once.

Attention must read every key and value of the context. The yardstick is numpy adding up an array
of as many bytes. Also tells how much memory a step takes beyond what is there.
Writes ``context`` into ``results.json``.
"""

import argparse
import os
import statistics
import time
from pathlib import Path

import numpy as np
from machine import write_result

from flare_runtime.config import ModelConfig
from flare_runtime.opening import load_model

LENGTHS = (128, 512, 1024, 2048)
LAYERS = (12, 15, 18, 21, 24)


def main() -> None:
    """Measure the curve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    model = load_model("smollm2-135m", ModelConfig(engine="onnx", threads=args.threads))
    random = np.random.default_rng(0)
    ids = random.integers(100, 40_000, max(LENGTHS)).tolist()
    caches = {}
    for length in LENGTHS:
        caches[length] = model.new_cache()
        caches[length].reserve(length + args.steps)
        model.forward(ids[:length], caches[length])
        model.forward((5,), caches[length], LAYERS)
    steps = {length: [] for length in LENGTHS}
    reads = {length: [] for length in LENGTHS}
    before = resident_bytes()
    for _ in range(args.steps):
        for length, cache in caches.items():  # in turn, so that all see the same machine
            cache.crop(length)
            began = time.perf_counter()
            model.forward((7,), cache, LAYERS)
            steps[length].append(time.perf_counter() - began)
    grown = resident_bytes() - before
    for length, cache in caches.items():
        entries = cache.keep()
        for _ in range(9):
            began = time.perf_counter()
            entries.sum()
            reads[length].append(time.perf_counter() - began)
    curve = {
        str(length): {
            "step_ms": round(1e3 * statistics.median(steps[length]), 2),
            "read_cache_once_ms": round(1e3 * statistics.median(reads[length]), 2),
            "cache_mb": round(caches[length].keep().nbytes / 1e6, 1),
        }
        for length in LENGTHS
    }
    first, last = (statistics.median(steps[n]) for n in (LENGTHS[0], LENGTHS[-1]))
    read = statistics.median(reads[LENGTHS[-1]]) - statistics.median(reads[LENGTHS[0]])
    write_result(
        "context",
        {
            "threads": args.threads,
            "curve": curve,
            "growth_vs_one_read": round((last - first) / read, 2),
            "memory_grown_by_steps_mb": round(grown / 1e6, 1),
        },
    )


def resident_bytes() -> int:
    """Memory of this process that is in use."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
