"""Turns a sentence encoder of the Hugging Face kind into an ONNX graph, in fp32."""

import inspect
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from flare_runtime.errors import ModelError, first_line
from flare_runtime.quiet import silence_transformers

if TYPE_CHECKING:
    from onnx_ir import Model
    from transformers import PreTrainedModel

GRAPH_NAME = "model.onnx"
OUTPUT = "last_hidden_state"
TOKEN_TYPES = "token_type_ids"
INPUTS = ("input_ids", "attention_mask", TOKEN_TYPES)
"""What an encoder may take; the last only where it tells two texts apart."""


def export_encoder(source: Path, target: Path) -> None:
    """Write ``model.onnx`` and its weights, ``model.onnx.data``, into the folder ``target``.

    Inputs are int64 ``[batch, sequence]``: ``input_ids``, ``attention_mask``, and
    ``token_type_ids`` if the model has them. The output is ``last_hidden_state``, float32
    ``[batch, sequence, hidden]``.

    onnxruntime fuses layer norms and activations by itself when it opens the graph; its offline
    optimizer and its fused attention were no faster and are left out. Weights lie beside the graph
    because onnxruntime maps such a file instead of copying it.

    Raises:
        ModelError: the source cannot be loaded, or its architecture cannot be exported.
        OSError: ``target`` cannot be written.
    """
    model = _load(source)
    with _silence():
        try:
            graph = _trace(model)
        except Exception as error:  # torch raises what its tracer, decomposer or translator raises
            raise ModelError(
                f"cannot export {source}: {type(model).__name__} does not fit ONNX "
                f"({first_line(_cause(error))}); use its transformers folder as it is"
            ) from error
        _write(graph, target)


def _load(source: Path) -> "PreTrainedModel":
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModel

    silence_transformers()
    try:
        model, report = AutoModel.from_pretrained(
            source,
            local_files_only=True,
            dtype=torch.float32,
            attn_implementation="eager",  # traces to the smallest graph
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ModelError(
            f"cannot load the encoder in {source}: {first_line(error)}; pull the model again"
        ) from error
    missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise ModelError(f"the weights in {source} lack {missing[0]}; pull the model again")
    return model.eval()


def _trace(model: "PreTrainedModel") -> "Model":
    import torch

    class LastStates(torch.nn.Module):
        """The model, with the one output that embedding reads."""

        def __init__(self) -> None:
            super().__init__()
            self.encoder = model

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            named = dict(zip(names, inputs, strict=True))
            states: torch.Tensor = self.encoder(**named).last_hidden_state
            return states

    accepted = inspect.signature(model.forward).parameters
    names = [name for name in INPUTS if name in accepted]
    # A tensor of its own for each input: the tracer takes one tensor given twice for one input.
    example = tuple(torch.full((2, 3), name != TOKEN_TYPES, dtype=torch.int64) for name in names)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")}
    program = torch.onnx.export(
        LastStates().eval(),
        example,
        dynamo=True,
        verbose=False,
        input_names=names,
        output_names=[OUTPUT],
        dynamic_shapes=(tuple(axes for _ in names),),
    )
    if program is None:
        raise ModelError("the exporter returned nothing")
    return program.model


def _write(graph: "Model", target: Path) -> None:
    """Save without the tracer's notes, which hold paths of the machine that exported."""
    import onnx_ir

    for node in graph.graph.all_nodes():
        node.metadata_props.clear()
    onnx_ir.save(graph, target / GRAPH_NAME, external_data=f"{GRAPH_NAME}.data")


def _cause(error: Exception) -> Exception:
    """Return what went wrong first: the exporter wraps it in advice on how to debug torch."""
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    return error


@contextmanager
def _silence() -> Iterator[None]:
    """Keep the exporter's progress, warnings and notes on absent packages off the terminal."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
