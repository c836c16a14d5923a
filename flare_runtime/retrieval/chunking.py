"""Documents to passages: sections cut at the best places into pieces the embedder can take."""

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from typing import cast

from flare_runtime.retrieval.readers import PATH_SEPARATOR, Document
from flare_runtime.types import Passage, Span

TokenCounter = Callable[[str], int]

ID_LENGTH = 16
"""Hexadecimal digits of a passage id."""
MAX_TITLE_SHARE = 0.5
"""A longer heading path loses its topmost headings, so that the text has room."""
MAX_TOKEN_LENGTH = 16
"""Characters a token may stand for on average. To a word-piece tokenizer a line of a million
letters is one unknown token; without this bound it would be one passage."""

_BLANK = re.compile(r"\s")


def split_document(
    document: Document, chunk_tokens: int, count_tokens: TokenCounter
) -> tuple[Passage, ...]:
    """Cut a document into passages; none crosses a section or holds a heading line of its own.

    ``document.text[passage.start : passage.end] == passage.text``, and nothing but white space
    lies between the passages of a section. Heading path and text together have at most
    ``chunk_tokens`` tokens. Ids come from source and text alone.
    """
    locate = _line_locator(document)
    seen: Counter[str] = Counter()
    passages = []
    for section in document.sections:
        title = _shorten_title(section.title, chunk_tokens, count_tokens)
        prefix = f"{title}\n" if title else ""
        body = document.text[section.start : section.end]
        for span in split_spans(body, chunk_tokens, lambda text: count_tokens(prefix + text)):  # noqa: B023
            start, end = section.start + span.start, section.start + span.end
            text = document.text[start:end]
            digest = _digest(document.source, text)
            seen[digest] += 1
            passage_id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
            location = section.location or locate(start, end)
            passages.append(Passage(passage_id, text, title, document.source, start, end, location))
    return tuple(passages)


def split_spans(text: str, max_tokens: int, count_tokens: TokenCounter) -> tuple[Span, ...]:
    """Cut ``text`` into stretches of at most ``max_tokens``, without white space at their ends.

    It is cut at paragraphs, lines, sentences, clauses or words, the best that will do.
    """

    def count(piece: str) -> int:
        if len(piece) <= 1:
            return 1  # It cannot be cut any further.
        floor = -(-len(piece) // MAX_TOKEN_LENGTH)
        # Long pieces are not even counted: the answer is known, and counting takes the time.
        return floor if floor > max_tokens else max(floor, count_tokens(piece))

    found = []
    for start, end in _split(text, 0, max_tokens, count):
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip())
        if piece.strip():
            found.append(Span(start, start + len(piece.strip())))
    return tuple(found)


def _split(
    text: str, offset: int, max_tokens: int, count: TokenCounter
) -> Iterator[tuple[int, int]]:
    from semchunk.semchunk import chunk

    try:
        # Its memo would keep every text ever counted.
        found = chunk(text, max_tokens, count, memoize=False, offsets=True)
    except RecursionError:
        # One level for every length of white-space run; a text of hundreds of lengths is halved.
        blank = _BLANK.search(text, len(text) // 2)
        middle = blank.end() if blank and blank.end() < len(text) else len(text) // 2
        yield from _split(text[:middle], offset, max_tokens, count)
        yield from _split(text[middle:], offset + middle, max_tokens, count)
    else:
        spans = cast("list[tuple[int, int]]", found[1])
        for start, end in spans:
            yield offset + start, offset + end


def _shorten_title(title: str, chunk_tokens: int, count_tokens: TokenCounter) -> str:
    budget = int(chunk_tokens * MAX_TITLE_SHARE)
    while count_tokens(title) > budget and PATH_SEPARATOR in title:
        title = title.partition(PATH_SEPARATOR)[2]
    if count_tokens(title) <= budget:
        return title
    first = split_spans(title, max(budget, 1), count_tokens)[:1]
    return title[first[0].start : first[0].end] if first and budget else ""


def _line_locator(document: Document) -> Callable[[int, int], str]:
    first_line = document.first_line
    if first_line is None:
        return lambda start, end: ""
    newlines = [found.start() for found in re.finditer("\n", document.text)]

    def locate(start: int, end: int) -> str:
        first = first_line + bisect_left(newlines, start)
        last = first_line + bisect_left(newlines, end - 1)
        return f"line {first}" if first == last else f"lines {first}-{last}"

    return locate


def _digest(source: str, text: str) -> str:
    # The length keeps (source, text) pairs apart that join to the same string.
    key = f"{len(source)}:{source}{text}".encode()
    return hashlib.sha256(key).hexdigest()[:ID_LENGTH]
