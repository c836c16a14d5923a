"""What evidence stays in the context: first hop, recent lookups whole, older ones compressed."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from flare_runtime.config import EvidenceConfig
from flare_runtime.prompt import choose_within_budget
from flare_runtime.retrieval.analyzer import analyze
from flare_runtime.sentences import split_sentences
from flare_runtime.types import Hit, Passage


def compress(passage: Passage, query: str, max_sentences: int) -> Passage:
    """Keep the sentences that share most terms with ``query``, in their own order.

    Ties go to the earlier sentence. The id stays: it is the same evidence, shorter.
    """
    wanted = set(analyze(query))
    sentences = [passage.text[span.start : span.end] for span in split_sentences(passage.text)]
    if len(sentences) <= max_sentences:
        return passage
    shared = [len(wanted & set(analyze(sentence))) for sentence in sentences]
    best = sorted(range(len(sentences)), key=lambda index: (-shared[index], index))
    kept = sorted(best[:max_sentences])
    return replace(passage, text=" ".join(sentences[index] for index in kept))


class EvidenceBuffer:
    """The evidence of one answer. Every passage enters once, whatever found it."""

    def __init__(
        self,
        config: EvidenceConfig,
        question: str,
        count_tokens: Callable[[Passage], int],
        max_passages: int,
        max_tokens: int,
    ) -> None:
        self._config = config
        self._question = question
        self._count_tokens = count_tokens
        self._max_passages = max_passages
        self._tokens_left = min(config.max_tokens, max_tokens)
        self._first_hop: tuple[Passage, ...] = ()
        self._lookups: list[tuple[Passage, ...]] = []
        self._seen: set[str] = set()

    @property
    def num_passages(self) -> int:
        """How many passages entered, compressed ones included."""
        return len(self._first_hop) + sum(map(len, self._lookups))

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All evidence in the order in which it entered, older lookups compressed."""
        num_old = max(len(self._lookups) - self._config.keep_lookups, 0)
        old = [
            compress(passage, self._question, self._config.compressed_sentences)
            for lookup in self._lookups[:num_old]
            for passage in lookup
        ]
        recent = [passage for lookup in self._lookups[num_old:] for passage in lookup]
        return (*self._first_hop, *old, *recent)

    def open(self, hits: Sequence[Hit]) -> tuple[Passage, ...]:
        """Take in the first hop and return what fits.

        Raises:
            ContextError: the prompt without evidence exceeds the budget.
        """
        self._first_hop = self._admit(hits, self._max_passages)
        return self._first_hop

    def add(self, hits: Sequence[Hit], max_new: int) -> tuple[Passage, ...]:
        """Take in at most ``max_new`` passages of a lookup that are not in the context yet."""
        new = self._admit(hits, min(max_new, self._max_passages - self.num_passages))
        if new:
            self._lookups.append(new)
        return new

    def _admit(self, hits: Sequence[Hit], max_new: int) -> tuple[Passage, ...]:
        fresh: list[Passage] = []
        seen = set(self._seen)
        for hit in hits:
            keys = _keys(hit.passage)
            if not keys & seen:
                seen |= keys
                fresh.append(hit.passage)
        sizes = [self._count_tokens(passage) for passage in fresh]
        chosen = choose_within_budget(sizes, self._tokens_left)[: max(max_new, 0)]
        admitted = tuple(fresh[index] for index in chosen)
        self._tokens_left -= sum(sizes[index] for index in chosen)
        self._seen |= {key for passage in admitted for key in _keys(passage)}
        return admitted


def _keys(passage: Passage) -> set[str]:
    """What makes two passages the same: the id, or the text however it is spaced."""
    return {f"id:{passage.id}", f"text:{' '.join(passage.text.split())}"}
