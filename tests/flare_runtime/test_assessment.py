import numpy as np
from fakes import WordCritic
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.assessment import Assessor, tokens_in
from flare_runtime.blocklist import Blocklist
from flare_runtime.entities import Whitelist
from flare_runtime.types import Draft, Span, Token

PIECES = st.lists(st.text(alphabet="ab \n", max_size=4), max_size=8)


def draft(*texts: str, states: bool = False) -> Draft:
    tokens = tuple(Token(index, text, -0.5, 0.1) for index, text in enumerate(texts))
    hidden = np.arange(len(texts), dtype=np.float32)[:, None, None] if states else None
    return Draft(tokens, "sentence", hidden)


@given(PIECES, st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), max_size=3))
def test_a_token_is_in_a_span_by_its_visible_characters(
    pieces: list[str], ranges: list[tuple[int, int]]
) -> None:
    spans = tuple(Span(start, start + length) for start, length in ranges)
    marked = tokens_in(draft(*pieces), spans)
    position = 0
    for piece, is_marked in zip(pieces, marked, strict=True):
        visible = {position + i for i, char in enumerate(piece) if not char.isspace()}
        assert is_marked == any(visible & set(range(s.start, s.end)) for s in spans)
        position += len(piece)


def test_a_codename_blocks_all_its_tokens_and_no_other() -> None:
    assessor = Assessor(Blocklist(["Bluefin Harbor"]), None)
    found = assessor.assess(draft("Ask", " Blue", "fin", " Har", "bor", " now", "."), None, 3, (1,))
    assert found.blocked == (False, True, True, True, True, False, False)
    assert found.blocked_spans == (Span(4, 18),)
    assert found.exempt == found.blocked
    assert (found.sentence_index, found.prefix, found.critic) == (3, (1,), None)


def test_grounded_names_and_blank_tokens_are_exempt_but_not_blocked() -> None:
    assessor = Assessor(Blocklist(()), None)
    whitelist = Whitelist("The tag is 2026-Q2.14 in production.")
    found = assessor.assess(
        draft("\n", "It", " is", " 2026-", "Q2.14", " or", " 7"), whitelist, 0, ()
    )
    assert found.exempt == (True, False, False, True, True, False, False)
    assert not any(found.blocked)


def test_the_critic_sees_the_mask_and_its_risks_travel_with_the_tokens() -> None:
    critic = WordCritic({0: 0.2, 1: 0.9, 2: 0.4})
    assessor = Assessor(Blocklist(["Orca"]), critic)
    found = assessor.assess(draft("See", " Orca", " there", states=True), None, 0, ())
    assert found.critic is not None
    assert found.critic.sentence_risk == np.float32(0.4)
    assert [round(token.risk or 0, 3) for token in found.draft.tokens] == [0.2, 0.9, 0.4]


def test_without_states_there_is_no_score() -> None:
    assert Assessor(Blocklist(()), WordCritic({})).assess(draft("x"), None, 0, ()).critic is None
