"""Which passages a sentence stands on, by the words they share."""

from collections.abc import Sequence

from flare_runtime.retrieval.analyzer import analyze
from flare_runtime.types import Passage

MIN_SHARE = 0.6


def supporting(sentence: str, passages: Sequence[Passage]) -> tuple[str, ...]:
    """Ids of the passages that hold at least ``MIN_SHARE`` of the sentence's terms, best first.

    Lexical and independent of every trigger: a hint where to look, not a proof.
    """
    terms = set(analyze(sentence))
    if not terms:
        return ()
    shares = [
        (len(terms & set(analyze(f"{passage.title} {passage.text}"))) / len(terms), passage.id)
        for passage in passages
    ]
    return tuple(id_ for share, id_ in sorted(shares, key=lambda s: -s[0]) if share >= MIN_SHARE)
