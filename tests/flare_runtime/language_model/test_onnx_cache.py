"""The ONNX engine's buffers: what is kept, what is filled in, what is never copied."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.errors import ModelError
from flare_runtime.language_model.onnx import OnnxModel
from flare_runtime.language_model.onnx_cache import FIRST_CAPACITY, CacheShape, OnnxCache
from flare_runtime.language_model.transformers import TransformersModel
from flare_runtime.opening import load_model

SHAPE = CacheShape(num_layers=2, num_heads=3, head_size=4)
IDS = [72, 101, 108, 108, 111, 9, 200]


def entries(num_tokens: int) -> np.ndarray:
    size = (SHAPE.num_layers, 2, SHAPE.num_heads, num_tokens, SHAPE.head_size)
    return np.random.default_rng(num_tokens).standard_normal(size, dtype=np.float32)


@pytest.fixture(scope="module")
def model(fp32_graph: Path) -> OnnxModel:
    return OnnxModel.load(fp32_graph, "tiny", threads=1)


@given(
    st.lists(
        st.tuples(st.sampled_from(["fill", "crop", "reserve"]), st.integers(0, 900)), max_size=8
    )
)
def test_what_is_held_is_what_was_filled_in_and_not_cropped(
    operations: list[tuple[str, int]],
) -> None:
    cache, held = OnnxCache(SHAPE, limit=1000), entries(0)
    for operation, amount in operations:
        if operation == "fill":
            held = entries(amount)
            cache.fill(held)
        elif operation == "crop":
            held = held[:, :, :, :amount]
            cache.crop(amount)
        else:
            cache.reserve(amount)
        np.testing.assert_array_equal(cache.keep(), held)
        assert cache.length == held.shape[3] <= cache.capacity <= 1000


def test_room_doubles_up_to_the_window() -> None:
    cache = OnnxCache(SHAPE, limit=FIRST_CAPACITY * 3)
    seen = []
    for length in (1, FIRST_CAPACITY, FIRST_CAPACITY + 1, 2 * FIRST_CAPACITY + 1):
        cache.reserve(length)
        seen.append(cache.capacity // FIRST_CAPACITY)
    assert seen == [1, 1, 2, 3]
    with pytest.raises(ModelError, match=f"at most {FIRST_CAPACITY * 3} tokens .*was: 769"):
        cache.reserve(769)


@pytest.mark.parametrize(
    "shape", [(2, 2, 3, 5), (2, 2, 3, 5, 8), (1, 2, 3, 5, 4), (2, 2, 1, 5, 4), (2, 1, 3, 5, 4)]
)
def test_entries_of_another_model_are_refused(shape: tuple[int, ...]) -> None:
    cache = OnnxCache(SHAPE, limit=100)
    cache.fill(entries(3))
    with pytest.raises(ModelError, match="another model's"):
        cache.fill(np.zeros(shape, dtype=np.float32))
    np.testing.assert_array_equal(cache.keep(), entries(3))


def test_buffers_are_the_cache_itself() -> None:
    cache = OnnxCache(SHAPE, limit=100)
    cache.fill(entries(2))
    for layer in range(2):
        for index, part in enumerate(("key", "value")):
            buffer = cache.buffers()[f"{layer}.{part}"].numpy()
            np.testing.assert_array_equal(buffer[0, :, :2], entries(2)[layer, index])


def test_kept_entries_go_on_where_they_were_taken(model: OnnxModel) -> None:
    """What a prefix cache needs: another sequence begins with entries of this one."""
    first = model.new_cache()
    model.forward(IDS, first)
    kept = first.keep()
    model.forward([1, 2], first)
    second = model.new_cache()
    second.fill(kept)
    output = model.forward([5, 6], second, (2,))
    wanted = model.forward([*IDS, 5, 6], model.new_cache(), (2,))
    np.testing.assert_allclose(output.logits, wanted.logits, atol=1e-5)
    np.testing.assert_allclose(output.hidden, wanted.hidden[-2:], atol=1e-5)


def test_a_cache_prefilled_by_transformers_can_be_handed_over(
    model: OnnxModel, source_folder: Path
) -> None:
    other = TransformersModel.load(source_folder, "tiny", threads=1)
    prefilled = other.new_cache()
    other.forward(IDS, prefilled)
    cache = model.new_cache()
    cache.fill(np.stack([[layer.keys[0], layer.values[0]] for layer in prefilled.inner.layers]))
    wanted = other.forward([5, 6], prefilled)
    np.testing.assert_allclose(model.forward([5, 6], cache).logits, wanted.logits, atol=1e-4)


def test_growing_in_the_middle_of_an_answer_changes_nothing(model: OnnxModel) -> None:
    ids = np.random.default_rng(3).integers(0, 256, FIRST_CAPACITY + 4).tolist()
    cache = model.new_cache()
    model.forward(ids[: FIRST_CAPACITY - 2], cache, (2,))
    for token in ids[FIRST_CAPACITY - 2 :]:
        output = model.forward([token], cache, (2,))
    wanted = model.forward(ids, model.new_cache(), (2,))
    np.testing.assert_allclose(output.logits, wanted.logits, atol=1e-4)
    assert cache.capacity == 2 * FIRST_CAPACITY


def test_an_interrupted_pass_has_run_nothing(model: OnnxModel) -> None:
    """An id that the vocabulary lacks fails inside the graph, in the second part of the input."""
    cache = model.new_cache()
    model.forward(IDS, cache)
    with pytest.raises(ModelError, match="the graph cannot run"):
        model.forward([1] * 300 + [99_999], cache)
    assert cache.length == len(IDS)
    output = model.forward([5, 6], cache)
    wanted = model.forward([*IDS, 5, 6], model.new_cache())
    np.testing.assert_allclose(output.logits, wanted.logits, atol=1e-5)


@pytest.mark.real_model
def test_a_step_allocates_no_memory_of_the_size_of_the_cache() -> None:
    """At 1 000 tokens the cache has 46 MB; it doubles at 1 024, and no step before copies it."""
    model = load_model("smollm2-135m")
    assert isinstance(model, OnnxModel)
    cache = model.new_cache()
    model.forward(list(range(100, 1100))[:980], cache)
    layers = (12, 15, 18, 21, 24)
    for token in range(5):
        model.forward([token + 50], cache, layers)
    size, before = cache.keep().nbytes, resident_bytes()
    buffer = cache.buffers()["0.key"].data_ptr()
    for token in range(20):
        model.forward([token + 70], cache, layers)
    assert cache.buffers()["0.key"].data_ptr() == buffer
    assert resident_bytes() - before < size / 10


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
