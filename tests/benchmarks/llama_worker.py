"""Runs llama.cpp's decode loop for ``LlamaLoop``: one JSON request a line, one reply a line."""

import json
import sys
import time

import numpy as np
from llama_cpp import Llama


def main() -> None:
    """Serve requests until the input ends."""
    gguf, threads = sys.argv[1], int(sys.argv[2])
    model = Llama(
        gguf,
        n_ctx=4096,
        n_threads=threads,
        n_threads_batch=threads,
        logits_all=False,
        verbose=False,
    )
    for line in sys.stdin:
        request = json.loads(line)
        model.reset()
        began = time.perf_counter()
        model.eval(request["prompt"])
        prefill = time.perf_counter() - began
        steps, found = [], []
        for token in request["tokens"]:
            began = time.perf_counter()
            found.append(
                int(
                    np.argmax(
                        model.scores[model.n_tokens - 1] if model._logits_all else logits(model)
                    )
                )
            )
            model.eval([token])
            steps.append(time.perf_counter() - began)
        print(json.dumps({"prefill": prefill, "steps": steps, "found": found}), flush=True)


def logits(model: Llama) -> np.ndarray:
    """Logits of the last position. *Shape:* ``[V]``."""
    return np.ctypeslib.as_array(model._ctx.get_logits(), shape=(model.n_vocab(),))


if __name__ == "__main__":
    main()
