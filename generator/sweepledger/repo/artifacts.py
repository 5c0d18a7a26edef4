"""Files that an attempt left on a volume, copied only if they are what its record says, byte for byte."""

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from generator.errors import StorageError
from generator.structs.record import Artifact

PORTION = 1 << 20
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Source(Protocol):
    """Where bytes come from."""

    def read(self, size: int, /) -> bytes:
        """Give so many bytes, fewer only at the end."""


def place_of(artifact: Artifact, into: Path) -> Path:
    """Say where an artifact is to lie below a folder. Raises StorageError for a path that leads out of it.

    A trial names its files, and its record stands in git for everybody to fetch.
    """
    parts = artifact.path.split("/")
    if {"", ".", ".."}.intersection(parts) or not artifact.path.isprintable() or "\\" in artifact.path:
        raise StorageError(
            f"artifact {artifact.path!r}: must be a plain path below its folder",
            hint="the trial named it so; take it from the volume by hand if you trust it",
        )
    return into.joinpath(*parts)


def is_there(artifact: Artifact, place: Path) -> bool:
    """Tell whether a file is there already, as recorded. Raises StorageError where another one is."""
    if not os.path.lexists(place):
        return False
    if place.is_file() and not place.is_symlink() and place.stat().st_size == artifact.bytes:
        with place.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == artifact.sha256:
                return True
    raise StorageError(f"{place}: is there already, with other content", hint="name another folder by --to")


def keep(source: Source, artifact: Artifact, place: Path) -> None:
    """Copy a source to a new file that appears only when it is what was recorded. Raises StorageError."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=".fetch.", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                _copy(source, artifact, file.write)
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(place)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise StorageError(f"{place}: {(error.strerror or str(error)).lower()}") from error


def _copy(source: Source, artifact: Artifact, write: "_Write") -> None:
    left, digest = artifact.bytes, hashlib.sha256()
    while portion := source.read(min(PORTION, left + 1)):
        left -= len(portion)
        if left < 0:
            break
        digest.update(portion)
        write(portion)
    if left or digest.hexdigest() != artifact.sha256:
        got = f"sha256:{digest.hexdigest()[:12]}" if not left else f"{artifact.bytes - left} bytes"
        raise StorageError(
            f"artifact {artifact.path!r}: must be {artifact.bytes} bytes of sha256:{artifact.sha256[:12]} "
            f"by its record, got {got}{' or more' if left < 0 else ''}",
            hint="the file was changed after its trial ended; nothing was kept of it",
        )


class _Write(Protocol):
    def __call__(self, content: bytes, /) -> int: ...


@contextmanager
def opened(roots: Iterable[Path], uid: str, artifact: Artifact) -> Iterator[Source]:
    """Open an attempt's artifact where one of its trial's folders has it. Raises StorageError.

    No link is followed on the way: a trial owns its folder.
    """
    tried = [root / "artifacts" / uid for root in roots]
    for folder in tried:
        descriptor = _open(folder, artifact.path.split("/"))
        if descriptor is not None:
            with os.fdopen(descriptor, "rb") as file:
                yield file
            return
    raise StorageError(
        f"{tried[0]}/{artifact.path}: is not there",
        hint="name the volume by --results, or read it through a pod by --by-pod",
    )


def _open(folder: Path, parts: list[str]) -> int | None:
    try:
        here = os.open(folder, FLAGS | os.O_DIRECTORY)
        for number, part in enumerate(parts, start=1):
            try:
                below = os.open(part, FLAGS | (os.O_DIRECTORY if number < len(parts) else 0), dir_fd=here)
            finally:
                os.close(here)
            here = below
    except OSError:
        return None
    return here
