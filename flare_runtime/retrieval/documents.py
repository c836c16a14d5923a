"""Documents on disk: which files there are, what they are called, and their text."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flare_runtime.errors import CorpusIndexError, DocumentError
from flare_runtime.retrieval.readers import Document, Section

__all__ = [
    "READER_VERSION",
    "SUFFIXES",
    "Document",
    "DocumentFile",
    "Section",
    "Skipped",
    "find_documents",
    "read_document",
]

READER_VERSION = 1
"""Raised when a reader or the chunker gives other passages than before; indexes then start anew."""

SUFFIXES = frozenset(".md .markdown .html .htm .xhtml .rst .txt .pdf".split())
"""Of the files that are read; all others are skipped."""

_PDF_MARK = b"%PDF-"


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """A file to read. ``source`` is the name under which its passages are cited."""

    source: str
    path: Path


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that is not in the index, and why."""

    source: str
    reason: str


def find_documents(
    paths: Sequence[Path], exclude: Path | None = None
) -> tuple[tuple[DocumentFile, ...], tuple[Skipped, ...]]:
    """List the documents in folders and single files, sorted by source, and what is left out.

    Sources are relative to the folder given, behind its name if there are several. Hidden files
    and the folder ``exclude`` are passed over in silence; a folder reached twice is read once.

    Raises:
        CorpusIndexError: a path does not exist.

    """
    roots = [_root(path) for path in paths]
    prefixes = _prefixes(roots)
    seen = {_identity(exclude)} if exclude is not None and exclude.exists() else set()
    files: set[DocumentFile] = set()
    skipped: set[Skipped] = set()
    for path, root in zip(paths, roots, strict=True):
        base = path if path.is_dir() else path.parent
        for child in _walk(path, seen) if path.is_dir() else (path,):
            source = prefixes[root] + child.relative_to(base).as_posix()
            reason = _reason_to_skip(child)
            if reason:
                skipped.add(Skipped(os.fsencode(source).decode("utf-8", "replace"), reason))
            else:
                files.add(DocumentFile(source, child))
    return (
        tuple(sorted(files, key=lambda file: (file.source, file.path))),
        tuple(sorted(skipped, key=lambda file: file.source)),
    )


def read_document(data: bytes, source: str) -> Document:
    """Turn a file's bytes into text; the suffix says how, unless the bytes are plainly a PDF.

    Raises:
        DocumentError: empty, binary, damaged, locked, or without text.

    """
    if not data:
        raise DocumentError(f"{source}: the file is empty")
    is_pdf = data.startswith(_PDF_MARK) or source.lower().endswith(".pdf")
    document = _read_pdf(data, source) if is_pdf else _read_markup(data, source)
    if not document.text.strip():
        hint = ": scanned pages need text recognition first" if is_pdf else ""
        raise DocumentError(f"{source}: holds no text{hint}")
    if not any(document.text[part.start : part.end].strip() for part in document.sections):
        raise DocumentError(f"{source}: holds nothing but headings")
    return document


# Readers are imported where they are used: each brings a library of its own.


def _read_pdf(data: bytes, source: str) -> Document:
    from flare_runtime.retrieval.readers.pdf import read_pdf

    return read_pdf(data, source)


def _read_markup(data: bytes, source: str) -> Document:
    suffix = Path(source).suffix.lower()
    if suffix in (".html", ".htm", ".xhtml"):
        from flare_runtime.retrieval.readers.html import read_html

        return read_html(data, source)
    if suffix in (".md", ".markdown"):
        from flare_runtime.retrieval.readers.markdown import read_markdown

        return read_markdown(data, source)
    from flare_runtime.retrieval.readers.text import read_rst, read_text

    return read_rst(data, source) if suffix == ".rst" else read_text(data, source)


def _root(path: Path) -> Path:
    if not path.exists():
        raise CorpusIndexError(f"no such folder or file: {path}; give one that exists")
    return path.resolve() if path.is_dir() else path.parent.resolve()


def _prefixes(roots: Sequence[Path]) -> Mapping[Path, str]:
    """Give each root its name as a prefix, numbered where names repeat; none to a single root."""
    distinct = list(dict.fromkeys(roots))
    if len(distinct) == 1:
        return {distinct[0]: ""}
    prefixes: dict[Path, str] = {}
    for root in distinct:
        prefix, number = f"{root.name}/", 2
        while prefix in prefixes.values():
            prefix, number = f"{root.name}-{number}/", number + 1
        prefixes[root] = prefix
    return prefixes


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _walk(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    """Yield the files below ``folder``, and folders that cannot be listed; each folder once."""
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        if not os.path.isdir(path):  # noqa: PTH112 - unlike Path.is_dir it never raises
            yield path
            continue
        try:
            if _identity(path) in seen:
                continue
            seen.add(_identity(path))
            children = sorted(path.iterdir(), reverse=True)
        except OSError:
            yield path
            continue
        waiting += [child for child in children if not child.name.startswith(".")]


def _reason_to_skip(path: Path) -> str:
    try:
        str(path).encode("utf-8")
        mode = path.stat().st_mode
    except UnicodeEncodeError:
        return "its path is not valid UTF-8"
    except OSError as error:
        return f"cannot be opened: {error.strerror}"
    if stat.S_ISDIR(mode):
        return "the folder cannot be listed"
    if path.suffix.lower() not in SUFFIXES:
        return f"not a document: {path.suffix or 'no suffix'}"
    return "" if stat.S_ISREG(mode) else "not a regular file"
