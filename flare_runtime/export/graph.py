"""Adapts the builder's graph to what the runtime asks of a pass.

- Residual streams come out one by one, so that a pass copies only those that a critic reads.
- Logits are computed for the rows in ``logit_positions`` only: none while a prompt is prefilled,
  the last one to go on from, all of a draft to verify it.
- The length of the sequence is a number, not a mask that grows with every token.
"""

from pathlib import Path
from typing import Any

import onnx
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from flare_runtime.errors import ModelError

ATTENTION = "GroupQueryAttention"
LENGTHS = {5: "seqlens_k", 6: "total_sequence_length"}
"""Inputs of the attention operator that tell how long the sequence is."""
FULL_ATTENTION = -1
OTHER_ENGINE = "serve the model with --set model.engine=transformers"


def adapt_graph(path: Path, head_size: int, hidden_size: int) -> None:
    """Rewrite the graph in place; its weights stay where they are.

    Raises:
        ModelError: the graph's cache cannot be cropped, or it has not the expected form.
    """
    model = onnx.load(path, load_external_data=False)
    graph = model.graph
    attentions = [node for node in graph.node if node.op_type == ATTENTION]
    _check(graph, attentions)
    names = _pull_apart_streams(graph)
    for index, name in LENGTHS.items():
        graph.node.remove(_producer(graph, attentions[0].input[index]))
        names[attentions[0].input[index]] = name
    _compute_wanted_logits(graph)
    for node in graph.node:
        node.input[:] = [names.get(value, value) for value in node.input]
        node.output[:] = [names.get(value, value) for value in node.output]
    _declare(graph, head_size, hidden_size)
    _drop_what_nothing_reads(graph)
    onnx.save(model, path)


def _check(graph: GraphProto, attentions: list[NodeProto]) -> None:
    """A cache can be cropped only where every layer keeps every token."""
    windows = [
        attribute.i
        for node in attentions
        for attribute in node.attribute
        if attribute.name == "local_window_size"
    ]
    if any(window != FULL_ATTENTION for window in windows):
        raise ModelError(
            "the model must use full attention in every layer, some of its layers see a window "
            f"of {max(windows)} tokens; their cache cannot be cropped, choose another generator"
        )
    past = {value.name for value in graph.input if value.name.startswith("past_")}
    others = {value.name for value in graph.input} - past - {"input_ids", "attention_mask"}
    if not attentions or len(past) != 2 * len(attentions) or others:
        raise ModelError(
            "the graph must keep keys and values of each attention layer and nothing else, it has "
            f"{len(attentions)} such layers, {len(past)} caches and "
            f"{', '.join(sorted(others)) or 'no'} other inputs; {OTHER_ENGINE}"
        )


def _producer(graph: GraphProto, value: str) -> NodeProto:
    found: list[NodeProto] = [node for node in graph.node if value in node.output]
    if found:
        return found[0]
    raise ModelError(f"the graph must compute {value}, this one does not; {OTHER_ENGINE}")


def _pull_apart_streams(graph: GraphProto) -> dict[str, str]:
    """New names of the residual streams: embeddings, each layer's output, after the final norm."""
    taps = _producer(graph, "aux_hidden_states")
    embeddings = next(node for node in graph.node if "input_ids" in node.input).output[0]
    final = _producer(graph, "logits").input[0]
    graph.node.remove(taps)
    streams = [embeddings, *taps.input, final]
    return {value: f"hidden_states.{layer}" for layer, value in enumerate(streams)}


def _compute_wanted_logits(graph: GraphProto) -> None:
    head = _producer(graph, "logits")
    rows = helper.make_node(
        "Gather", [head.input[0], "logit_positions"], ["logit_rows"], name="/lm_head/rows", axis=1
    )
    graph.node.insert(list(graph.node).index(head), rows)
    head.input[0] = "logit_rows"


def _declare(graph: GraphProto, head_size: int, hidden_size: int) -> None:
    """State inputs and outputs anew, with every size that is known."""
    for value in (*graph.input, *graph.output):
        if value.name.endswith((".key", ".value")):
            value.type.tensor_type.shape.dim[3].dim_value = head_size
        if value.name == "logits":
            value.type.tensor_type.shape.dim[1].dim_param = "num_logits"
    _replace(
        graph.input,
        {"attention_mask"},
        helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, ["batch_size"]),
        helper.make_tensor_value_info("total_sequence_length", TensorProto.INT32, []),
        helper.make_tensor_value_info("logit_positions", TensorProto.INT64, ["num_logits"]),
    )
    computed = {value for node in graph.node for value in node.output}
    shape: list[str | int | None] = ["batch_size", "sequence_length", hidden_size]
    _replace(
        graph.output,
        {"aux_hidden_states"},
        *(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name in sorted(computed)
            if name.startswith("hidden_states.")
        ),
    )
    del graph.value_info[:]  # stale where names have changed; the runtime infers them


def _replace(values: Any, dropped: set[str], *added: ValueInfoProto) -> None:  # noqa: ANN401
    """Put ``added`` where ``dropped`` were; protobuf frees what leaves a list, hence the copies."""
    kept = [value for value in values if value.name not in dropped]
    copies = [ValueInfoProto.FromString(value.SerializeToString()) for value in (*kept, *added)]
    del values[:]
    values.extend(copies)


def _drop_what_nothing_reads(graph: GraphProto) -> None:
    """What computed lengths from the mask is dead now, and would ask for the mask."""
    wanted = {value.name for value in graph.output}
    for node in reversed(list(graph.node)):
        if wanted.intersection(node.output):
            wanted.update(node.input)
        else:
            graph.node.remove(node)
