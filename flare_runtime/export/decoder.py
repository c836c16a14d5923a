"""A causal language model as a graph: onnxruntime-genai's builder, run as a process of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from flare_runtime.config import Precision
from flare_runtime.errors import ModelError
from flare_runtime.export.graph import OTHER_ENGINE, adapt_graph
from flare_runtime.language_model.tokenizer import context_window
from flare_runtime.model_store import read_json

BUILDER = "onnxruntime_genai.models.builder"
WEIGHT_OPTIONS = ("block_size=64", "accuracy_level=4")
"""Quantised weights share a scale by 64; they are multiplied as int8, not turned back to floats."""
READING = "Reading layer "


def export_decoder(
    source: Path, target: Path, precision: Precision, progress: Callable[[int, int], None]
) -> tuple[int, ...]:
    """Write ``model.onnx`` and its weights into ``target``; return the layers that come out.

    Args:
        source: a transformers folder of a causal language model.
        target: an empty folder.
        precision: of the weights that are multiplied; everything else stays fp32.
        progress: called with the layers read and the layers in all.

    Raises:
        ModelError: the model cannot be converted.
    """
    num_layers = read_json(source / "config.json").get("num_hidden_layers")
    if not isinstance(num_layers, int) or num_layers < 2:
        raise ModelError(
            f"the model in {source} must have 2 or more num_hidden_layers in config.json, "
            f"was: {num_layers}; {OTHER_ENGINE}"
        )
    _refuse_window(source)
    layers = ",".join(str(layer) for layer in range(1, num_layers))
    command = [
        *(sys.executable, "-P", "-m", BUILDER, "-i", str(source), "-o", str(target)),
        *("-p", precision, "-e", "cpu", "-c", str(target / "cache")),
        *("--extra_options", f"aux_hidden_state_layers={layers}"),
        *(() if precision == "fp32" else WEIGHT_OPTIONS),
    ]
    lines = _run(command, target, lambda layer: progress(layer, num_layers))
    if not (target / "model.onnx").is_file():
        raise ModelError(f"cannot convert the model in {source}: {_reason(lines)}; {OTHER_ENGINE}")
    described = read_json(target / "genai_config.json")["model"]["decoder"]
    adapt_graph(target / "model.onnx", described["head_size"], described["hidden_size"])
    for leftover in target.iterdir():
        if leftover.name not in ("model.onnx", "model.onnx.data"):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    progress(num_layers, num_layers)
    return tuple(range(num_layers + 1))


def _refuse_window(source: Path) -> None:
    """The builder leaves a window out where all layers have the same, and says nothing."""
    config = read_json(source / "config.json")
    window = config.get("sliding_window") if config.get("use_sliding_window", True) else None
    if window and window < context_window(config, str(source)):
        raise ModelError(
            f"the model must use full attention in every layer, its layers see a window of "
            f"{window} tokens; their cache cannot be cropped, choose another generator"
        )


def _run(command: list[str], folder: Path, report: Callable[[int], None]) -> list[str]:
    """Run the builder and return what it said, without its progress bars."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    lines = []
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                if line.startswith(READING):
                    report(int(line.removeprefix(READING)))
        finally:
            process.kill()
    return lines


def _reason(lines: list[str]) -> str:
    """The last line that is an error's; Python's tracebacks end with it."""
    errors = [line for line in lines if "Error" in line.partition(":")[0]]
    return (errors or lines or ["the builder said nothing"])[-1].rstrip(".")
