from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.errors import ContextError
from flare_runtime.language_model import Forward, KVCache
from flare_runtime.language_model.transformers import TransformersModel
from flare_runtime.session import Session, SessionUsage, reusable_length

TOKEN = st.integers(0, 255)
SEQUENCE = st.lists(TOKEN, min_size=1, max_size=24)


class Counting:
    """Counts the inputs of a real model."""

    def __init__(self, model: TransformersModel) -> None:
        self._model = model
        self.inputs: list[int] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    def forward(
        self,
        token_ids: Sequence[int],
        cache: KVCache,
        layers: tuple[int, ...] = (),
        num_logits: int = 1,
    ) -> Forward:
        self.inputs.append(len(token_ids))
        return self._model.forward(token_ids, cache, layers, num_logits)


def fresh(model: TransformersModel, token_ids: Sequence[int]) -> Forward:
    return model.forward(token_ids, model.new_cache(), (1, 3))


@given(st.lists(SEQUENCE, min_size=1, max_size=5), st.integers(0, 3))
def test_counters_add_up(
    tiny_model: TransformersModel, sequences: list[list[int]], num_steps: int
) -> None:
    model = Counting(tiny_model)
    session = Session(model)  # type: ignore[arg-type]
    for sequence in sequences:
        before = session.usage
        session.sync(sequence)
        spent = session.usage - before
        assert spent.reused + spent.prefilled == len(sequence)
    for _ in range(num_steps):
        session.step(5)
    assert sum(model.inputs) == session.usage.prefilled + session.usage.stepped
    assert session.usage.stepped == num_steps


def test_standing_still_runs_nothing(tiny_model: TransformersModel) -> None:
    model = Counting(tiny_model)
    session = Session(model)  # type: ignore[arg-type]
    first = session.sync([1, 2, 3])
    again = session.sync([1, 2, 3])
    assert again is first
    assert model.inputs == [3]
    assert session.usage == SessionUsage(prefilled=3, reused=3, stepped=0)


def test_a_failed_pass_is_not_remembered(tiny_model: TransformersModel) -> None:
    class Failing(Counting):
        fails = False

        def forward(
            self,
            token_ids: Sequence[int],
            cache: KVCache,
            layers: tuple[int, ...] = (),
            num_logits: int = 1,
        ) -> Forward:
            if self.fails:
                raise RuntimeError("out of memory")
            return super().forward(token_ids, cache, layers, num_logits)

    model = Failing(tiny_model)
    session = Session(model)  # type: ignore[arg-type]
    session.sync([1, 2, 3])
    model.fails = True
    with pytest.raises(RuntimeError):
        session.sync([1, 9, 9])
    model.fails = False
    output = session.sync([1, 9, 9])
    np.testing.assert_allclose(output.logits, fresh(tiny_model, [1, 9, 9]).logits, atol=2e-5)


@pytest.mark.parametrize(
    ("case", "held", "wanted", "reuse", "run"),
    [
        ("kv-003", [1, 2, 3, 4, 5, 6], [1, 2, 3, 9, 9, 4, 5], 3, 4),
        ("kv-004", [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], 5, 1),
        ("kv-005", [1, 2, 3], [7, 8], 0, 2),
    ],
)
def test_kv_003_004_005_reusable_prefix(
    case: str, held: list[int], wanted: list[int], reuse: int, run: int
) -> None:
    assert reusable_length(held, wanted) == reuse
    assert len(wanted) - reusable_length(held, wanted) == run


@pytest.mark.parametrize("length", [0, 257])
def test_a_sequence_must_fit_the_window(tiny_model: TransformersModel, length: int) -> None:
    with pytest.raises(ContextError, match=f"1 to 256 tokens .*was: {length}"):
        Session(tiny_model).sync([1] * length)


def test_a_full_window_takes_no_step(tiny_model: TransformersModel) -> None:
    session = Session(tiny_model)
    session.sync([1] * 256)
    with pytest.raises(ContextError, match="was: 257"):
        session.step(1)
