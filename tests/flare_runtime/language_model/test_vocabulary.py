import json

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from flare_runtime.errors import ModelError
from flare_runtime.language_model.vocabulary import vocabulary_bytes


def specification(tokenizer: Tokenizer) -> dict[str, object]:
    return json.loads(tokenizer.to_str())


def test_byte_level_tokens_are_their_bytes() -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>")])
    tokenizer.add_tokens([AddedToken("Köln")])
    table = vocabulary_bytes(specification(tokenizer))
    assert sorted(table[:256]) == [bytes([byte]) for byte in range(256)]
    assert table[256:] == (b"", "Köln".encode())
    for text in ["Größe 5 µ\n\t", "検査 🦊"]:
        assert b"".join(table[i] for i in tokenizer.encode(text).ids).decode() == text


def test_word_mark_tokens_with_byte_fallback() -> None:
    vocabulary = [
        ("<unk>", 0.0),
        ("\u2581the", -1.0),
        ("<0xC3>", -9.0),
        ("<0xA9>", -9.0),
        ("x", -2.0),
    ]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=0, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens([AddedToken("<unk>")])
    table = vocabulary_bytes(specification(tokenizer))
    assert table == (b"", b" the", b"\xc3", b"\xa9", b"x")
    ids = tokenizer.encode(" theé").ids
    assert b"".join(table[i] for i in ids).decode() == " theé"


@pytest.mark.parametrize("decoder", [None, {"type": "WordPiece"}])
def test_a_tokenizer_that_loses_text_is_refused(decoder: dict[str, str] | None) -> None:
    with pytest.raises(ModelError, match="must decode by bytes"):
        vocabulary_bytes({"decoder": decoder, "model": {"vocab": {"a": 0}}})
