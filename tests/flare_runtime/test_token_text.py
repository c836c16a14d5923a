import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.token_text import TokenText


def decode(pieces):
    decoder = TokenText()
    return [decoder.push(piece) for piece in pieces] + [decoder.flush()]


def cut(data, cuts):
    edges = [0, *sorted({c for c in cuts if c < len(data)}), len(data)]
    return [data[a:b] for a, b in zip(edges, edges[1:], strict=False)]


NEARLY_UTF8 = st.lists(
    st.one_of(
        st.characters().map(lambda c: c.encode("utf-8", "surrogatepass")),
        st.sampled_from([b"\xed\xa0", b"\xf4\x90", b"\xe0\x80", b"\xc0", b"\xf0\x9f", b"\x80"]),
        st.binary(max_size=3),
    ),
    max_size=12,
).map(b"".join)


@given(NEARLY_UTF8, st.lists(st.integers(0, 60), max_size=20))
def test_pieces_join_to_the_codecs_answer(data, cuts):
    # A full stop closes any unfinished tail, so the codec and the tail rule cannot differ.
    closed = data + b"."
    assert "".join(decode(cut(closed, cuts))) == closed.decode("utf-8", "replace")


@given(st.text(), st.lists(st.integers(0, 60), max_size=20))
def test_valid_text_is_given_back_whatever_the_cut(text, cuts):
    assert "".join(decode(cut(text.encode(), cuts))) == text


@given(st.text(min_size=1))
def test_no_character_waits_longer_than_its_last_byte(text):
    decoder = TokenText()
    for char in text:
        data = char.encode()
        assert all(decoder.push(data[i : i + 1]) == "" for i in range(len(data) - 1))
        assert decoder.push(data[-1:]) == char


@pytest.mark.parametrize("hexed", ["ff", "c0", "f5", "80", "eda0", "f490", "e080", "f080", "c1bf"])
def test_bytes_that_can_never_be_valid_are_replaced_at_once(hexed):
    data = bytes.fromhex(hexed)
    assert TokenText().push(data) == data.decode("utf-8", "replace")


@pytest.mark.parametrize("hexed", ["c3", "e6", "e69c", "ed9f", "f0", "f09f", "f09fa6", "f48fbf"])
def test_an_unfinished_character_waits_and_is_dropped_at_the_end(hexed):
    assert decode([b"Hi ", bytes.fromhex(hexed)]) == ["Hi ", "", ""]


def test_a_flush_forgets_the_tail():
    decoder = TokenText()
    decoder.push(b"\xf0\x9f")
    decoder.flush()
    assert decoder.push(b"ok") == "ok"


def test_an_empty_token_changes_nothing():
    assert decode([b"\xc3", b"", b"\xa9"]) == ["", "", "é", ""]
