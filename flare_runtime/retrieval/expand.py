"""One question into several queries: paraphrases and a hypothetical answer, by the generator."""

from dataclasses import dataclass
from typing import Literal

import regex

from flare_runtime.retrieval import QueryWriter

QueryKind = Literal["original", "paraphrase", "hypothetical"]

MAX_PARAPHRASE_TOKENS = 32
MAX_HYPOTHETICAL_TOKENS = 96
MAX_PARAPHRASE_CHARACTERS = 400
"""A line longer than this is the generator rambling, not a query."""

_PARAPHRASE = (
    "Write {number} different search queries that ask for the same information as the question."
    " One query a line, nothing else.\nQuestion: {query}"
)
_HYPOTHETICAL = (
    "Write a short passage, as it would stand in the documentation, that answers the question."
    "\nQuestion: {query}"
)

_MARKER = regex.compile(
    r"(?:[-+•·–—>]+\s+|\(?\d{1,2}[.):](?!\d)\s*|\(?\p{L}\)\s+|(?:query|question)\s*\d*:\s*)+",
    regex.IGNORECASE,
)
_QUOTES = "\"'`*“”‘’«»„「」 \t"


@dataclass(frozen=True, slots=True)
class ExpandedQuery:
    """A text to search with.

    A hypothetical answer resembles the passage that is sought (HyDE, arXiv 2212.10496), but its
    made-up words must not be matched literally: it is for the dense list only.
    """

    text: str
    kind: QueryKind


def expand(
    query: str, writer: QueryWriter | None, paraphrases: int = 0, hyde: bool = False
) -> tuple[ExpandedQuery, ...]:
    """Return ``query`` itself first, then up to so many paraphrases, then a hypothetical answer.

    Whatever the writer answers, the original is there; lines that are blank or already present
    are dropped. Without a writer there is nothing but the original.
    """
    queries = [ExpandedQuery(query, "original")]
    if writer is None:
        return tuple(queries)
    if paraphrases > 0:
        instruction = _fill(_PARAPHRASE, query, paraphrases)
        answer = writer.write(instruction, MAX_PARAPHRASE_TOKENS * paraphrases)
        for line in parse_paraphrases(answer, query)[:paraphrases]:
            queries.append(ExpandedQuery(line, "paraphrase"))
    if hyde:
        answer = " ".join(
            writer.write(_fill(_HYPOTHETICAL, query), MAX_HYPOTHETICAL_TOKENS).split()
        )
        if answer and _key(answer) != _key(query):
            queries.append(ExpandedQuery(answer, "hypothetical"))
    return tuple(queries)


def parse_paraphrases(answer: str, query: str) -> tuple[str, ...]:
    """Read one query a line, without numbers, bullets and quotes; no blanks, no repeats.

    A line that ends in a colon is taken for an introduction ("Here are three queries:").
    """
    found = {_key(query): query}
    for line in answer.splitlines():
        text = _strip_marker(line.strip(_QUOTES)).strip(_QUOTES)
        is_query = any(character.isalnum() for character in text) and not text.endswith(":")
        if is_query and len(text) <= MAX_PARAPHRASE_CHARACTERS:
            found.setdefault(_key(text), text)
    return tuple(found.values())[1:]


def _strip_marker(line: str) -> str:
    marker = _MARKER.match(line)
    return line[marker.end() :] if marker else line


def _fill(template: str, query: str, number: int = 0) -> str:
    # Not str.format: a question may hold braces. The question goes in last, so it is not searched.
    return template.replace("{number}", str(number)).replace("{query}", query)


def _key(text: str) -> str:
    return " ".join(text.casefold().split())
