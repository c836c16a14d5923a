import numpy as np
import pytest
from fakes import ANSWER_OPENS, PlannedModel
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.config import DecodeConfig
from flare_runtime.drafter import Drafter
from flare_runtime.language_model.transformers import TransformersModel
from flare_runtime.session import Session
from flare_runtime.stopwatch import Stopwatch
from flare_runtime.types import Draft


def drafter(model: object, layers: tuple[int, ...] = (), **settings: object) -> Drafter:
    session = Session(model, layers)  # type: ignore[arg-type]
    return Drafter(model, session, DecodeConfig(**settings), Stopwatch())  # type: ignore[arg-type]


def all_drafts(
    writer: Drafter, prefix: tuple[int, ...], max_tokens: int = 200
) -> tuple[list[Draft], tuple[int, ...]]:
    drafts = []
    while not drafts or drafts[-1].finish not in ("eos", "length"):
        drafts.append(writer.draft(prefix, max_tokens))
        prefix = (*prefix, *(token.id for token in drafts[-1].tokens))
    return drafts, prefix


def texts(plan: str, **settings: object) -> list[tuple[str, str]]:
    model = PlannedModel(plan)
    drafts, _ = all_drafts(drafter(model, **settings), model.encode(ANSWER_OPENS))
    return [(draft.text, draft.finish) for draft in drafts]


def test_list_items_are_drafts_though_their_ends_are_certain_late() -> None:
    """The end of an item is known only when the next marker and its word are written."""
    assert texts("1. Pull it.\n2. Push it.\n3. Rest now.") == [
        ("1. Pull it.", "sentence"),
        ("\n2. Push it.", "sentence"),
        ("\n3. Rest now.", "eos"),
    ]


def test_each_draft_is_a_sentence() -> None:
    assert texts("Use v1.2.3 now. It costs $3.50 there. Done") == [
        ("Use v1.2.3 now.", "sentence"),
        (" It costs $3.50 there.", "sentence"),
        (" Done", "eos"),
    ]


def test_a_paragraph_break_ends_a_draft_without_a_full_stop() -> None:
    assert texts("Steps for you\n\nFirst pull. Then push.") == [
        ("Steps for you", "paragraph"),
        ("\n\nFirst pull.", "sentence"),
        (" Then push.", "eos"),
    ]


def test_clauses_end_drafts_when_asked_or_when_a_sentence_is_long() -> None:
    plan = "First pull the chart, then push the tag. Done."
    assert texts(plan, boundary="clause")[0] == ("First pull the chart,", "clause")
    assert texts(plan)[0] == ("First pull the chart, then push the tag.", "sentence")
    assert texts(plan, max_draft_tokens=3)[0] == ("First pull the chart,", "clause")


@pytest.mark.parametrize("limit", range(1, 9))
def test_the_limit_cuts_no_word(tiny_model: TransformersModel, limit: int) -> None:
    """A byte-level model cannot write a word in one token, so a limit would cut one in two."""
    words = " ab cde f"

    class Spelling:
        stop_ids = frozenset({257})

        def __getattr__(self, name: str) -> object:
            return getattr(tiny_model, name)

        def forward(self, token_ids: list[int], cache: object, layers: object = ()) -> object:
            output = tiny_model.forward(token_ids, cache, layers)  # type: ignore[arg-type]
            logits = np.zeros(258, dtype=np.float32)
            written = cache.length - 1  # type: ignore[attr-defined]
            logits[tiny_model.encode(words)[written] if written < len(words) else 257] = 9
            return type(output)(logits[np.newaxis], output.hidden)

    writer = drafter(Spelling())
    draft = writer.draft((5,), limit)
    wanted = {1: " ", 2: " a", 3: " ab", 4: " ab", 5: " ab", 6: " ab", 7: " ab cde", 8: " ab cde"}
    assert draft.finish == "length"
    assert draft.text == wanted[limit]
    writer.forget_ahead()
    assert writer.num_decoded == len(draft.tokens) + writer.num_dropped


@given(
    st.lists(
        st.sampled_from(
            ["Go.", "Use v1.2.3", "now", "$3.", "“Stop.", "ok”", "1.", "\n\n", "is, so"]
        ),
        max_size=12,
    ).map(" ".join)
)
def test_drafts_join_to_what_the_model_writes(plan: str) -> None:
    model = PlannedModel(plan)
    writer = drafter(model)
    prefix = model.encode(ANSWER_OPENS)
    drafts, sequence = all_drafts(writer, prefix)
    assert "".join(draft.text for draft in drafts) == plan
    assert sequence == (*prefix, *model.encode(plan))
    assert writer.num_decoded == len(model.encode(plan)) + 1
    assert writer.num_dropped == 0


def test_a_committed_boundary_costs_nothing() -> None:
    model = PlannedModel("One two. Three four. Five.")
    prefix = model.encode(ANSWER_OPENS)
    all_drafts(drafter(model), prefix)
    assert model.runs == [len(prefix)] + [1] * len(model.encode("One two. Three four. Five."))


def test_a_draft_thrown_away_drops_the_token_looked_at() -> None:
    model = PlannedModel("One two. Three four.")
    writer = drafter(model)
    prefix = model.encode(ANSWER_OPENS)
    first = writer.draft(prefix, 50)
    assert (writer.num_decoded, writer.num_dropped) == (3, 0)
    again = writer.draft(prefix, 50)
    assert again == first
    assert (writer.num_decoded, writer.num_dropped) == (6, 1)


def test_the_token_looked_at_is_not_drawn_again() -> None:
    """A boundary was judged by the next token; another draw could make it one inside a number."""

    class Coin(PlannedModel):
        def _next(self, text: str) -> tuple[str, float]:
            return ("Go.", 0.99) if text.endswith("assistant\n") else super()._next(text)

    model = Coin("Go. Left")
    num_judged = 0
    for seed in range(5):
        writer = drafter(model, temperature=1.5, seed=seed)
        prefix = model.encode(ANSWER_OPENS)
        first = writer.draft(prefix, 30)
        if first.finish != "sentence":
            continue
        ahead = writer._ahead
        assert ahead is not None
        looked_at = [*(token.id for token in ahead.tokens), ahead.choice.id]
        second = writer.draft((*prefix, *(t.id for t in first.tokens)), 30)
        drawn = [token.id for token in second.tokens][: len(looked_at)]
        assert drawn == looked_at[: len(drawn)]
        num_judged += bool(drawn)
    assert num_judged > 0


def test_every_token_brings_the_state_of_its_own_position() -> None:
    model = PlannedModel("One two. Three.")
    draft = drafter(model, layers=(1, 2)).draft(model.encode(ANSWER_OPENS), 50)
    assert draft.hidden is not None
    assert draft.hidden.shape == (2, 2, 1)
    np.testing.assert_array_equal(draft.hidden[:, 0, 0], [token.id for token in draft.tokens])


@pytest.mark.parametrize(("prompt_length", "new_tokens"), [(5, 12), (4, 1)])
def test_hid_001_002_the_last_token_has_its_own_state(
    tiny_model: TransformersModel, prompt_length: int, new_tokens: int
) -> None:
    """One pass more than choosing needs, whose logits the next draft begins with."""
    prefix = tuple(range(40, 40 + prompt_length))
    draft = drafter(tiny_model, layers=(1, 3)).draft(prefix, new_tokens)
    ids = [token.id for token in draft.tokens]
    whole = tiny_model.forward((*prefix, *ids), tiny_model.new_cache(), (1, 3))
    assert draft.hidden is not None and whole.hidden is not None
    np.testing.assert_allclose(draft.hidden, whole.hidden[prompt_length:], atol=2e-5)


def test_a_seam_opens_with_a_blank() -> None:
    model = PlannedModel("Tail.")
    model.encode(" Spaced.")
    writer = drafter(model)
    prefix = model.encode(ANSWER_OPENS)
    assert writer.draft(prefix, 1, must_open_with_blank=False).text == "Tail."
    opened = drafter(model).draft(prefix, 1, must_open_with_blank=True)
    assert opened.text[:1] in (" ", "\n", "")
    assert opened.text != "Tail."


def test_an_end_at_once_is_an_empty_draft() -> None:
    model = PlannedModel("")
    draft = drafter(model, layers=(1,)).draft(model.encode(ANSWER_OPENS), 9)
    assert (draft.tokens, draft.finish, draft.hidden) == ((), "eos", None)
