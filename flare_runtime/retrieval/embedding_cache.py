"""Finished embeddings of a run, kept on disk so that a killed run need not be done again."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from flare_runtime.retrieval.embedder import Embedder

Progress = Callable[[str, int, int], None]
"""Called with a stage ("read", "embed", "save"), how much of it is done, and how much there is."""

KEY_BYTES = 32
MAX_LENGTH_ERROR = 1e-3
"""A record whose vector is not of length 1 was cut off by a crash and does not count."""


class EmbeddingCache:
    """Text to vector, in a file that only grows: SHA-256 of the text, then ``dimension`` float32.

    The file's name holds the embedder's, so that vectors of two embedders never meet.
    """

    def __init__(self, folder: Path, embedder: str, dimension: int) -> None:
        name = hashlib.sha256(f"{embedder} {dimension}".encode()).hexdigest()[:16]
        self._dimension = dimension
        self._record_bytes = KEY_BYTES + 4 * dimension
        self._rows: dict[bytes, int] = {}
        self._file = (folder / f"embeddings-{name}.bin").open("a+b")
        self._num_rows = self._load()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def __contains__(self, text: str) -> bool:
        return _key(text) in self._rows

    def get(self, text: str) -> NDArray[np.float32]:
        """Return the vector of ``text``, which must be in here. *Shape:* ``[D]``."""
        self._file.seek(self._rows[_key(text)] * self._record_bytes + KEY_BYTES)
        return np.frombuffer(self._file.read(4 * self._dimension), dtype=np.float32)

    def add(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Append the vectors of ``texts``, on disk before this returns. *Shape:* ``[N, D]``."""
        for text, vector in zip(texts, vectors, strict=True):
            self._file.write(_key(text) + vector.astype(np.float32).tobytes())
            self._rows[_key(text)] = self._num_rows
            self._num_rows += 1
        self._file.flush()

    def _load(self) -> int:
        """Note which records are whole and cut off what follows the last; return how many."""
        num_rows = self._file.tell() // self._record_bytes
        self._file.truncate(num_rows * self._record_bytes)
        self._file.seek(0)
        for row in range(num_rows):
            record = self._file.read(self._record_bytes)
            vector = np.frombuffer(record, dtype=np.float32, offset=KEY_BYTES)
            if abs(float(np.linalg.norm(vector)) - 1.0) <= MAX_LENGTH_ERROR:
                self._rows[record[:KEY_BYTES]] = row
        return num_rows


def embed_into(
    cache: EmbeddingCache,
    texts: Sequence[str],
    embedder: "Embedder",
    batch_size: int,
    progress: Progress,
) -> None:
    """Embed in batches of similar length, longest first: what memory it takes shows at once."""
    ordered = sorted(texts, key=len, reverse=True)
    for start in range(0, len(ordered), batch_size):
        batch = ordered[start : start + batch_size]
        cache.add(batch, embedder.embed(batch))
        progress("embed", start + len(batch), len(ordered))


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()
