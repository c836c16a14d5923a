"""What every engine owes the runtime, whatever runs the numbers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from flare_runtime.errors import ContextError, ModelError
from flare_runtime.export.proof import least_cosine
from flare_runtime.language_model import Forward, LanguageModel, Message
from flare_runtime.session import Session

TEXT = "Größe: 3 µm — 検査 🦊\tend."
IDS = [72, 101, 108, 108, 111, 9, 200, 3, 77, 77, 12, 250]
TOKEN = st.integers(0, 255)
SEQUENCE = st.lists(TOKEN, min_size=1, max_size=24)
ALL_LAYERS = (0, 1, 2, 3)


@pytest.fixture(scope="module")
def reference(source_folder: Path):
    return AutoModelForCausalLM.from_pretrained(source_folder, dtype=torch.float32).eval()


def run_reference(reference, token_ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Logits ``[S, V]`` and hidden states ``[S, L, H]`` by transformers itself."""
    with torch.inference_mode():
        output = reference(torch.tensor([list(token_ids)]), output_hidden_states=True)
    states = [layer[0].numpy() for layer in output.hidden_states]
    return output.logits[0].numpy(), np.stack(states, axis=1)


def fresh(model: LanguageModel, token_ids: Sequence[int], num_logits: int = 1) -> Forward:
    return model.forward(token_ids, model.new_cache(), ALL_LAYERS, num_logits)


def test_logits_and_states_are_those_of_transformers(served, reference) -> None:
    logits, states = run_reference(reference, IDS)
    output = fresh(served.model, IDS, num_logits=len(IDS))
    assert output.logits.shape == logits.shape
    assert output.hidden.shape == states.shape
    assert output.logits.dtype == output.hidden.dtype == np.float32
    if served.is_exact:
        np.testing.assert_allclose(output.logits, logits, atol=1e-4)
        np.testing.assert_allclose(output.hidden, states, atol=1e-4)
    assert least_cosine(output.hidden, states) >= served.least_cosine


def test_greedy_tokens_are_those_of_transformers(served, reference) -> None:
    if not served.is_exact:
        pytest.skip("a quantised engine is held by its states, and by real answers")
    prompt = torch.tensor([IDS])
    wanted = reference.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=40, do_sample=False,
        eos_token_id=None, pad_token_id=0,
    )[0, len(IDS) :].tolist()  # fmt: skip
    session = Session(served.model)
    output = session.sync(IDS)
    written = []
    for _ in wanted:
        written.append(int(output.logits[-1].argmax()))
        output = session.step(written[-1])
    assert written == wanted


@pytest.mark.parametrize("num_logits", [1, 5, len(IDS)])
def test_logits_come_for_the_last_tokens(served, num_logits: int) -> None:
    whole = fresh(served.model, IDS, len(IDS)).logits
    output = fresh(served.model, IDS, num_logits)
    np.testing.assert_allclose(output.logits, whole[-num_logits:], atol=1e-5)


def test_layers_come_in_the_order_asked_for(served) -> None:
    every = fresh(served.model, IDS).hidden
    output = served.model.forward(IDS, served.model.new_cache(), (3, 0, 2))
    np.testing.assert_array_equal(output.hidden, every[:, [3, 0, 2]])
    assert served.model.forward(IDS, served.model.new_cache()).hidden is None


def test_what_was_given_stays_as_it_was(served) -> None:
    """An engine that reuses its buffers must give copies away."""
    cache = served.model.new_cache()
    first = served.model.forward([72], cache, (1,))
    logits, hidden = first.logits.copy(), first.hidden.copy()
    served.model.forward([101], cache, (1,))
    np.testing.assert_array_equal(first.logits, logits)
    np.testing.assert_array_equal(first.hidden, hidden)


@given(st.lists(SEQUENCE, min_size=1, max_size=4), st.lists(TOKEN, max_size=3))
@settings(max_examples=60)
def test_any_edits_equal_a_fresh_prefill(
    served, sequences: list[list[int]], steps: list[int]
) -> None:
    session = Session(served.model, (1, 3))
    for sequence in sequences:
        before = session.usage
        output = session.sync(sequence)
        spent = session.usage - before
        assert spent.reused + spent.prefilled == len(sequence)
        check_against_fresh(served, output, sequence)
    for count, token in enumerate(steps, start=1):
        output = session.step(token)
        check_against_fresh(served, output, [*sequences[-1], *steps[:count]])
    assert session.token_ids == (*sequences[-1], *steps)


def check_against_fresh(served, output: Forward, sequence: Sequence[int]) -> None:
    wanted = served.model.forward(sequence, served.model.new_cache(), (1, 3))
    if served.is_exact:
        np.testing.assert_allclose(output.logits, wanted.logits, atol=2e-5)
        np.testing.assert_allclose(output.hidden[-1], wanted.hidden[-1], atol=2e-5)
    assert np.isfinite(output.logits).all()


def test_entries_kept_are_not_computed_again(served) -> None:
    """Cropping to a boundary and going on must not disturb what lies before it."""
    model = served.model
    cache = model.new_cache()
    model.forward(IDS, cache)
    first = model.forward([5, 6], cache, (2,), num_logits=2)
    cache.crop(len(IDS))
    model.forward([9, 9, 9], cache)
    cache.crop(len(IDS))
    again = model.forward([5, 6], cache, (2,), num_logits=2)
    np.testing.assert_array_equal(again.logits, first.logits)
    np.testing.assert_array_equal(again.hidden, first.hidden)


@pytest.mark.parametrize(
    ("operation", "amount", "left"),
    [("to", 0, 0), ("to", 2, 2), ("to", 10, 4), ("by", 0, 4), ("by", 7, 0), ("by", 1, 3)],
)
def test_kv_001_crop_keeps_that_many(served, operation: str, amount: int, left: int) -> None:
    cache = served.model.new_cache()
    served.model.forward([1, 2, 3, 4], cache)
    cache.crop(amount if operation == "to" else max(cache.length - amount, 0))
    assert cache.length == left


def test_the_window_can_be_filled_and_no_more(served, reference) -> None:
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 256, served.model.context_window).tolist()
    session = Session(served.model, ALL_LAYERS)
    session.sync(ids[:-3])
    for token in ids[-3:]:
        output = session.step(token)
    _, states = run_reference(reference, ids)
    cosine = least_cosine(
        np.concatenate([output.hidden, output.hidden]), np.stack([states[-1], states[-1]])
    )
    assert cosine >= served.least_cosine
    with pytest.raises(ContextError, match=f"was: {len(ids) + 1}"):
        session.step(1)


def test_a_long_prompt_in_one_go_equals_transformers(served, reference) -> None:
    """Long enough that an engine runs it in several passes; logits span their borders."""
    rng = np.random.default_rng(2)
    ids = rng.integers(0, 256, served.model.context_window - 7).tolist()
    logits, states = run_reference(reference, ids)
    output = fresh(served.model, ids, num_logits=400)
    assert output.logits.shape == (400, logits.shape[1])
    assert output.hidden.shape == states.shape
    assert least_cosine(output.hidden, states) >= served.least_cosine
    if served.is_exact:
        np.testing.assert_allclose(output.logits, logits[-400:], atol=1e-4)


@pytest.mark.parametrize("layers", [(4,), (-1,), (0, 9), (1, 1)])
def test_layers_that_the_model_lacks_are_refused(served, layers: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match=r"layers must be .*\(0, 1, 2, 3\), was: .*models build"):
        served.model.forward(IDS, served.model.new_cache(), layers)


@pytest.mark.parametrize(("ids", "num_logits"), [([], 1), (IDS, 0), (IDS, len(IDS) + 1)])
def test_a_pass_without_tokens_or_logits_is_refused(
    served, ids: list[int], num_logits: int
) -> None:
    cache = served.model.new_cache()
    with pytest.raises(ModelError, match="logits for 1 to all"):
        served.model.forward(ids, cache, (), num_logits)
    assert cache.length == 0


def test_a_foreign_cache_is_refused(served) -> None:
    with pytest.raises(ModelError, match="must come from new_cache"):
        served.model.forward(IDS, object())


def test_the_engine_says_what_it_is(served, request: pytest.FixtureRequest) -> None:
    parameter = request.node.callspec.params["served"]
    wanted = "transformers float32" if parameter.startswith("tr") else parameter.replace("-", " ")
    assert served.model.engine == wanted
    assert served.model.layers == frozenset(ALL_LAYERS)
    assert served.model.context_window == 600


def test_text_side_is_that_of_transformers(served, source_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(source_folder)
    model = served.model
    assert model.encode(TEXT) == tuple(tokenizer.encode(TEXT, add_special_tokens=False))
    assert b"".join(map(model.token_bytes, model.encode(TEXT))).decode() == TEXT
    assert model.token_bytes(257) == model.token_bytes(99_999) == b""
    assert model.stop_ids == {256, 257}
    assert set(model.control_tokens) == {"<|turn|>", "<|end|>"}
    messages = [Message("user", "Why?"), Message("assistant", "So."), Message("user", "Oh?")]
    rendered = tokenizer.apply_chat_template(
        [{"role": m.role, "content": m.content} for m in messages],
        tokenize=False,
        add_generation_prompt=True,
    )
    assert model.render(messages) == rendered
