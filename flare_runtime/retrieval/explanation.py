"""Why a search found what it found: the ranks of every candidate on its way to the hits."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from flare_runtime.retrieval.expand import ExpandedQuery
from flare_runtime.types import Hit, Passage


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that rank fusion chose, with each rank it had; ranks count from 1."""

    passage: Passage
    list_ranks: Mapping[str, int]
    """Rank in each list that has it: ``dense``, ``sparse``, ``dense (a paraphrase)``, ..."""
    fused_rank: int
    fused_score: float
    rerank_score: float | None = None
    """None without a reranker."""
    rank: int | None = None
    """Place among the hits; None if it is below ``min_relevance`` or ``top_k`` was reached."""

    @property
    def score(self) -> float:
        """What decided its place."""
        return self.fused_score if self.rerank_score is None else self.rerank_score


@dataclass(frozen=True, slots=True)
class SearchExplanation:
    """One search from its queries to its hits. ``candidates`` are best first, hits before others.

    ``reranker`` is "none" when fusion had the last word.
    """

    query: str
    queries: tuple[ExpandedQuery, ...]
    reranker: str
    candidates: tuple[Candidate, ...]

    @property
    def hits(self) -> tuple[Hit, ...]:
        """What the search returns."""
        return tuple(
            Hit(candidate.passage, candidate.score, candidate.rank)
            for candidate in self.candidates
            if candidate.rank is not None
        )

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON values."""
        return asdict(self)

    def hit_lines(self, max_characters: int) -> tuple[str, ...]:
        """Describe the hits, two lines each; excerpts are cut to ``max_characters``."""
        return tuple(
            line
            for hit in self.hits
            for line in (
                f"{hit.rank}. {_place(hit.passage)}  {hit.score:.4f}",
                f"   {_excerpt(hit.passage.text, max_characters)}",
            )
        )

    def lines(self, max_characters: int) -> tuple[str, ...]:
        """Describe queries, reranker and every candidate with all its ranks."""
        lines = [f"{query.kind}: {query.text}" for query in self.queries]
        lines.append(f"reranker: {self.reranker}")
        for candidate in self.candidates:
            ranks = ", ".join(f"{name} {rank}" for name, rank in candidate.list_ranks.items())
            rerank = candidate.rerank_score
            lines += [
                f"{candidate.rank or '-'}. {_place(candidate.passage)}",
                f"   {ranks}; fused {candidate.fused_rank} ({candidate.fused_score:.4f})"
                + ("" if rerank is None else f"; rerank {rerank:.4f}"),
                f"   {_excerpt(candidate.passage.text, max_characters)}",
            ]
        return tuple(lines)


def _place(passage: Passage) -> str:
    parts = (passage.source, passage.title, passage.location)
    return " · ".join(part for part in parts if part)


def _excerpt(text: str, max_characters: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= max_characters else line[: max_characters - 1].rstrip() + "…"
