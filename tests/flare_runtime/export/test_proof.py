"""A graph that computes something else than its source is found out."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import load_file, save_file

from flare_runtime.errors import ModelError
from flare_runtime.export.proof import least_cosine, prove_decoder


def test_the_graph_of_a_model_passes(built: Path) -> None:
    proof = prove_decoder(built, built / "onnx-fp32", "fp32")
    assert proof.agreement == 1.0
    assert proof.cosine == pytest.approx(1.0, abs=1e-5)


def test_the_graph_of_another_model_does_not(model_folder: Path) -> None:
    weights = load_file(model_folder / "model.safetensors")
    name = "model.layers.1.mlp.down_proj.weight"
    weights[name] = np.ascontiguousarray(weights[name][::-1])
    save_file(weights, model_folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"fp32 graph must compute what .* less than 0.9999"):
        prove_decoder(model_folder, model_folder / "onnx-fp32", "fp32")


STATES = arrays.arrays(np.float32, (4, 3, 5), elements=st.floats(0.125, 8, width=32)).map(
    lambda states: states * np.resize(np.array([1, -1, 1], dtype=np.float32), states.shape)
)


@given(STATES, STATES)
def test_cosine_is_that_of_the_layer_least_alike(left: np.ndarray, right: np.ndarray) -> None:
    by_layer = []
    for layer in range(3):
        cosines = [
            float(np.dot(left[t, layer], right[t, layer]))
            / float(np.linalg.norm(left[t, layer]) * np.linalg.norm(right[t, layer]))
            for t in range(1, 4)
        ]
        by_layer.append(sum(cosines) / 3)
    assert least_cosine(left, right) == pytest.approx(min(by_layer), abs=1e-4)


def test_the_first_token_does_not_count() -> None:
    left = np.ones((3, 2, 4), dtype=np.float32)
    right = left.copy()
    right[0] = -200
    assert least_cosine(left, right) == pytest.approx(1.0)
