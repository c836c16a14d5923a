"""Holds a new graph against transformers, on a text that neither has seen."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from flare_runtime.config import Precision
from flare_runtime.errors import ModelError

TEXT = (
    "The release of the harbour service goes out on Thursday at 14:30. Before that, two people "
    "check the list: the database has a copy, the old image can still be had, and whoever is on "
    "call knows. If errors stay above 2.5 % for ten minutes, the release is taken back.\n\n"
    "def is_open(gate: str) -> bool:\n    return gate in {'north', 'quay-7'}\n"
)
LEAST_COSINE: dict[Precision, float] = {"fp32": 0.9999, "int8": 0.98, "int4": 0.80}
"""A graph that computes something else lies far below; these tell quantised from wrong."""


@dataclass(frozen=True, slots=True)
class Proof:
    """How near a graph comes to transformers in fp32.

    ``agreement``: share of positions at which both find the same token most probable.
    ``cosine``: mean over tokens of the residual streams' cosine, of the layer where it is least.
    """

    agreement: float
    cosine: float


def prove_decoder(source: Path, graph: Path, precision: Precision) -> Proof:
    """Compare a generator's graph with its source.

    Raises:
        ModelError: they are further apart than the precision explains.
    """
    from flare_runtime.language_model.onnx import OnnxModel
    from flare_runtime.language_model.transformers import TransformersModel

    reference = TransformersModel.load(source, str(source))
    built = OnnxModel.load(graph, str(source))
    ids = reference.encode(TEXT)[: reference.context_window]
    layers = tuple(sorted(built.layers))
    outputs = [
        model.forward(ids, model.new_cache(), layers, num_logits=len(ids))
        for model in (reference, built)
    ]
    top = [output.logits.argmax(axis=-1) for output in outputs]
    states = [output.hidden for output in outputs if output.hidden is not None]
    proof = Proof(float(np.mean(top[0] == top[1])), least_cosine(states[0], states[1]))
    if not proof.cosine >= LEAST_COSINE[precision]:
        raise ModelError(
            f"the {precision} graph must compute what {source} does, the cosine of their states "
            f"was {proof.cosine:.4f}, less than {LEAST_COSINE[precision]}; choose a higher "
            "precision, or serve the model with --set model.engine=transformers"
        )
    return proof


def least_cosine(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    """Mean cosine over tokens, of the layer where it is least; position 0 left out.

    The first token's state is many times larger than the others and tells nothing (attention
    sink). *Shape:* ``[T, L, H]`` each.
    """
    products = np.sum(left * right, axis=-1)
    norms = np.linalg.norm(left, axis=-1) * np.linalg.norm(right, axis=-1)
    return float(np.min(np.mean((products / norms)[1:], axis=0)))


def prove_encoder(source: Path, graph: Path) -> Proof:
    """Compare an embedder's graph with its source.

    Raises:
        ModelError: their vectors differ.
    """
    from flare_runtime.retrieval.embedder import load_embedder

    sentences = [*TEXT.splitlines(), TEXT]
    left, right = (
        load_embedder(folder, str(source)).embed(sentences) for folder in (source, graph)
    )
    cosine = float(np.min(np.sum(left * right, axis=-1)))
    if not cosine >= LEAST_COSINE["fp32"]:
        raise ModelError(
            f"the graph must give the vectors of {source}, the cosine of two was {cosine:.4f}; "
            "remove the graph, search then uses transformers"
        )
    return Proof(1.0, cosine)
