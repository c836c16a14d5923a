"""Build or refresh an index: read what is new, embed what is new, carry the rest over."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from flare_runtime.errors import ConfigError, CorpusIndexError
from flare_runtime.retrieval.chunking import split_document
from flare_runtime.retrieval.corpus import indexed_text, write_passages
from flare_runtime.retrieval.documents import READER_VERSION, SUFFIXES, Skipped, find_documents
from flare_runtime.retrieval.embedding_cache import EmbeddingCache, Progress, embed_into
from flare_runtime.retrieval.former_index import FormerIndex, open_former
from flare_runtime.retrieval.ingestion import Ingested, ingest, skipped_files
from flare_runtime.retrieval.manifest import Manifest
from flare_runtime.retrieval.storage import (
    PASSAGES_FILE,
    VECTORS_FILE,
    lock_index,
    publish,
    work_folder,
)
from flare_runtime.types import Passage

if TYPE_CHECKING:
    from flare_runtime.retrieval.embedder import Embedder

MAX_NAMED_REASONS = 3
"""The error about folders without documents tells so many reasons."""


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What a run found and did.

    ``num_files`` documents are in the index, ``num_reused`` of them were not read again;
    ``num_embedded`` texts were embedded in this run. ``changed`` is False if the index was up to
    date and nothing was written. Warnings begin with the file they are about.
    """

    num_files: int
    num_reused: int
    num_passages: int
    num_embedded: int
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...]
    changed: bool


def no_progress(stage: str, done: int, total: int) -> None:
    """Report to nobody."""


def build_index(
    folders: Sequence[Path],
    output: Path,
    embedder: "Embedder",
    chunk_tokens: int = 200,
    batch_size: int = 32,
    progress: Progress = no_progress,
) -> IndexReport:
    """Bring the index in ``output`` up to date with the documents in ``folders``, or make it.

    Unchanged files are neither read nor embedded again; passages of edited and deleted files go.
    A run that is stopped half-way leaves the former index as it was, and the next run finds the
    embeddings that were finished.

    Raises:
        ConfigError: ``chunk_tokens`` or ``batch_size`` is out of range.
        CorpusIndexError: a folder does not exist, nothing in them can be read, ``output`` is no
            place for an index, or another process is writing it.

    """
    _check(embedder, chunk_tokens, batch_size)
    found, passed_over = find_documents(folders, exclude=output)
    if not found:
        raise _nothing_readable(folders, passed_over)
    wanted = Manifest(embedder.name, embedder.dimension, chunk_tokens, READER_VERSION)
    with lock_index(output):
        former, warnings = open_former(output, wanted)
        files, unopened = ingest(
            found,
            former,
            lambda document: split_document(document, chunk_tokens, embedder.count_tokens),
            lambda done: progress("read", done, len(found)),
        )
        skipped = (*passed_over, *unopened, *skipped_files(files))
        if not any(file.passages for file in files):
            raise _nothing_readable(folders, skipped)
        plan = _plan(files, skipped, wanted, former)
        changed = plan.manifest.files != former.files
        num_embedded = _write(plan, output, embedder, batch_size, progress) if changed else 0
    return IndexReport(
        num_files=sum(bool(file.passages) for file in files),
        num_reused=sum(file.is_reused for file in files if file.passages),
        num_passages=len(plan.passages),
        num_embedded=num_embedded,
        skipped=plan.manifest.skipped,
        warnings=(*warnings, *_file_warnings(files)),
        changed=changed,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """The next state of the index; ``texts`` are what is indexed of its passages, in order."""

    manifest: Manifest
    passages: tuple[Passage, ...]
    texts: tuple[str, ...]
    former: FormerIndex


def _plan(
    files: tuple[Ingested, ...],
    skipped: tuple[Skipped, ...],
    wanted: Manifest,
    former: FormerIndex,
) -> _Plan:
    passages = tuple(passage for file in files for passage in file.passages)
    manifest = replace(
        wanted,
        files={file.source: file.record for file in files},
        skipped=tuple(sorted(skipped, key=lambda file: file.source)),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return _Plan(manifest, passages, tuple(map(indexed_text, passages)), former)


def _write(
    plan: _Plan, output: Path, embedder: "Embedder", batch_size: int, progress: Progress
) -> int:
    """Embed what has no vector yet and publish the plan; return how many texts were embedded."""
    with EmbeddingCache(work_folder(output), embedder.name, embedder.dimension) as cache:
        known = plan.former.rows
        texts = dict.fromkeys(plan.texts)
        missing = [text for text in texts if text not in known and text not in cache]
        embed_into(cache, missing, embedder, batch_size, progress)

        def vector_of(text: str) -> NDArray[np.float32]:
            return plan.former.vectors[known[text]] if text in known else cache.get(text)

        progress("save", 0, 1)
        publish(output, lambda folder: _fill(folder, plan, vector_of))
        progress("save", 1, 1)
    return len(missing)


def _fill(folder: Path, plan: _Plan, vector_of: Callable[[str], NDArray[np.float32]]) -> Manifest:
    """Write all files of a generation but the manifest, which is returned."""
    from flare_runtime.retrieval.dense import DenseIndex
    from flare_runtime.retrieval.sparse import SparseIndex

    write_passages(folder / PASSAGES_FILE, plan.passages)
    # Mapped to the file, so that the vectors of a large corpus need not fit into memory twice.
    vectors = open_memmap(
        folder / VECTORS_FILE,
        mode="w+",
        dtype=np.float32,
        shape=(len(plan.texts), plan.manifest.dimension),
    )
    for row, text in enumerate(plan.texts):
        vectors[row] = vector_of(text)
    vectors.flush()
    DenseIndex.build(vectors).save(folder)
    SparseIndex.build(plan.texts).save(folder)
    return plan.manifest


def _check(embedder: "Embedder", chunk_tokens: int, batch_size: int) -> None:
    if batch_size < 1:
        raise ConfigError(f"batch_size must be at least 1, was: {batch_size}")
    if not 1 <= chunk_tokens <= embedder.max_tokens:
        raise ConfigError(
            f"chunk_tokens must be from 1 to {embedder.max_tokens}, the most {embedder.name}"
            f" takes, was: {chunk_tokens}"
        )


def _nothing_readable(folders: Sequence[Path], skipped: Sequence[Skipped]) -> CorpusIndexError:
    named = ", ".join(map(str, folders))
    reasons = "; ".join(f"{file.source}: {file.reason}" for file in skipped[:MAX_NAMED_REASONS])
    return CorpusIndexError(
        f"no readable documents in {named} ({reasons or 'nothing there'});"
        f" readable are {' '.join(sorted(SUFFIXES))}"
    )


def _file_warnings(files: tuple[Ingested, ...]) -> tuple[str, ...]:
    return tuple(f"{file.source}: {text}" for file in files for text in file.record.warnings)
