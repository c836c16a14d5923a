"""The passages of an index on disk: one JSON object a line."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from flare_runtime.errors import CorpusIndexError
from flare_runtime.types import Passage

_PASSAGE = TypeAdapter(Passage)


def write_passages(path: Path, passages: Iterable[Passage]) -> None:
    """Write passages to a new file, in order."""
    with path.open("wb") as file:
        for passage in passages:
            file.write(_PASSAGE.dump_json(passage) + b"\n")


def read_passages(path: Path) -> tuple[Passage, ...]:
    """Read the passages of a file, in order.

    Raises:
        CorpusIndexError: the file is missing or a line is no passage.

    """
    passages: list[Passage] = []
    try:
        with path.open("rb") as file:
            for line in file:
                passages.append(_PASSAGE.validate_json(line, strict=True))
    except OSError as error:
        raise CorpusIndexError(f"cannot read passages: {path}: {error.strerror}") from error
    except ValidationError as error:
        raise CorpusIndexError(
            f"not a passage: {path} line {len(passages) + 1}; index again"
        ) from error
    return tuple(passages)


def indexed_text(passage: Passage) -> str:
    """Return what search sees of a passage: its heading path, a line break, its text."""
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text
