"""Files to passages, each file on its own: one that cannot be read never stops the others."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from flare_runtime.errors import DocumentError
from flare_runtime.retrieval.documents import Document, DocumentFile, Skipped, read_document
from flare_runtime.retrieval.former_index import FormerIndex
from flare_runtime.retrieval.manifest import FileRecord
from flare_runtime.types import Passage

Splitter = Callable[[Document], tuple[Passage, ...]]


@dataclass(frozen=True, slots=True)
class Ingested:
    """A file, what is recorded of it, and its passages."""

    source: str
    record: FileRecord
    passages: tuple[Passage, ...]
    is_reused: bool


def ingest(
    files: Sequence[DocumentFile],
    former: FormerIndex,
    split: Splitter,
    progress: Callable[[int], None],
) -> tuple[tuple[Ingested, ...], tuple[Skipped, ...]]:
    """Read every file that ``former`` does not hold as it is now; tell those that cannot be opened.

    ``progress`` is called with the number of files done.
    """
    ingested: list[Ingested] = []
    unopened: list[Skipped] = []
    for number, file in enumerate(files, start=1):
        try:
            data = file.path.read_bytes()
        except OSError as error:
            unopened.append(Skipped(file.source, f"cannot be opened: {error.strerror}"))
        else:
            ingested.append(_reuse_or_read(data, file.source, former, split))
        progress(number)
    return tuple(ingested), tuple(unopened)


def skipped_files(ingested: Iterable[Ingested]) -> tuple[Skipped, ...]:
    """Return the files that were opened but gave no passages."""
    return tuple(
        Skipped(file.source, file.record.reason) for file in ingested if file.record.reason
    )


def _reuse_or_read(data: bytes, source: str, former: FormerIndex, split: Splitter) -> Ingested:
    digest = hashlib.sha256(data).hexdigest()
    known = former.files.get(source)
    if known is not None and known.sha256 == digest:
        return Ingested(source, known, former.passages.get(source, ()), is_reused=True)
    try:
        document = read_document(data, source)
        passages = split(document)
        record = FileRecord(digest, tuple(passage.id for passage in passages), document.warnings)
        return Ingested(source, record, passages, is_reused=False)
    except DocumentError as error:
        reason = str(error).removeprefix(f"{source}: ")
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        # A parser met what its authors did not foresee: that file's trouble, not the corpus's.
        reason = f"cannot be read: {type(error).__name__}: {error}"
    return Ingested(source, FileRecord(digest, reason=reason), (), is_reused=False)
