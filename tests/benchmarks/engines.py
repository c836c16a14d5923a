"""Decode loops to compare: each prefills a prompt and then runs given tokens one by one."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from flare_runtime.export.decoder import BUILDER, WEIGHT_OPTIONS
from flare_runtime.language_model import LanguageModel

LAYERS = (12, 15, 18, 21, 24)
"""What a critic reads."""


@dataclass(frozen=True)
class Timing:
    """Seconds of the prompt and of each step, and the token found most probable at each step."""

    prefill: float
    steps: tuple[float, ...]
    tokens: tuple[int, ...]


class Loop(Protocol):
    """A decode loop."""

    def run(self, prompt: Sequence[int], tokens: Sequence[int]) -> Timing:
        """Prefill the prompt, then step through the tokens."""
        ...


class OurLoop:
    """A model of the runtime, with a critic's layers coming out."""

    def __init__(self, model: LanguageModel, layers: tuple[int, ...] = LAYERS) -> None:
        self._model = model
        self._layers = layers

    def run(self, prompt: Sequence[int], tokens: Sequence[int]) -> Timing:
        """Prefill the prompt, then step through the tokens."""
        cache = self._model.new_cache()
        began = time.perf_counter()
        output = self._model.forward(prompt, cache, self._layers)
        prefill = time.perf_counter() - began
        steps, found = [], []
        for token in tokens:
            began = time.perf_counter()
            found.append(int(output.logits[-1].argmax()))
            output = self._model.forward((token,), cache, self._layers)
            steps.append(time.perf_counter() - began)
        return Timing(prefill, tuple(steps), tuple(found))


class GenaiLoop:
    """onnxruntime-genai's own loop on a graph with the same weights and the same layers."""

    def __init__(self, source: Path, threads: int) -> None:
        import onnxruntime_genai

        self._genai = onnxruntime_genai
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        build_genai(source, folder)
        path = folder / "genai_config.json"
        config = json.loads(path.read_text())
        options = config["model"]["decoder"]["session_options"]
        options |= {"intra_op_num_threads": threads, "inter_op_num_threads": 1}
        path.write_text(json.dumps(config))
        self._model = onnxruntime_genai.Model(str(folder))

    def run(self, prompt: Sequence[int], tokens: Sequence[int]) -> Timing:
        """Prefill the prompt, then step through the tokens."""
        params = self._genai.GeneratorParams(self._model)
        params.set_search_options(max_length=len(prompt) + len(tokens) + 2, do_sample=False)
        generator = self._genai.Generator(self._model, params)
        began = time.perf_counter()
        generator.append_tokens(np.array([prompt], dtype=np.int32))
        logits = generator.get_output("logits")
        prefill = time.perf_counter() - began
        steps, found = [], []
        for token in tokens:
            began = time.perf_counter()
            found.append(int(np.asarray(logits)[0, -1].argmax()))
            generator.append_tokens(np.array([[token]], dtype=np.int32))
            logits = generator.get_output("logits")
            generator.get_output("aux_hidden_states")
            steps.append(time.perf_counter() - began)
        return Timing(prefill, tuple(steps), tuple(found))


def build_genai(source: Path, folder: Path) -> None:
    """Build the graph as the builder gives it."""
    layers = ",".join(map(str, LAYERS))
    subprocess.run(
        [
            *(sys.executable, "-P", "-m", BUILDER, "-i", str(source), "-o", str(folder)),
            *("-p", "int8", "-e", "cpu", "-c", str(folder / "cache")),
            *("--extra_options", f"aux_hidden_state_layers={layers}", *WEIGHT_OPTIONS),
        ],
        check=True,
        capture_output=True,
        cwd=folder,
    )


class LlamaLoop:
    """llama.cpp in a Python of its own: ``pip install llama-cpp-python`` there compiles it.

    It gives no middle layers, so it has less to do than the others.
    """

    def __init__(self, python: Path, gguf: Path, threads: int) -> None:
        worker = Path(__file__).with_name("llama_worker.py")
        self._process = subprocess.Popen(
            [str(python), str(worker), str(gguf), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, prompt: Sequence[int], tokens: Sequence[int]) -> Timing:
        """Prefill the prompt, then step through the tokens."""
        request = json.dumps({"prompt": list(prompt), "tokens": list(tokens)})
        print(request, file=self._process.stdin, flush=True)
        reply = json.loads(self._process.stdout.readline())
        return Timing(reply["prefill"], tuple(reply["steps"]), tuple(reply["found"]))
