"""Where files are written before they have their names, and what a crash leaves there. Raises OSError.

Whoever fills a temporary file or folder holds its lock, which ends with its process, however that ends. So
what nobody holds was left by a crash, and may go. Where a file system has no locks nothing is cleared away.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from generator.structs.tree import FileTree

TEMPORARY = ".tmp"


def _prefix(name: str) -> str:
    return f".{name}."


def new_file(place: Path, name: str) -> tuple[int, Path]:
    """Open a new temporary file in `place` that is for `name`; it is held until it is closed."""
    return _begin(lambda: tempfile.mkstemp(TEMPORARY, _prefix(name), place))


def _begin(make: Callable[[], tuple[int, str]]) -> tuple[int, Path]:
    """Make something temporary, and hold its lock; again where it was cleared away before that."""
    while True:
        descriptor, name = make()
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if Path(name).stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor, Path(name)
        os.close(descriptor)


@contextmanager
def new_folder(place: Path, name: str) -> Iterator[Path]:
    """Make a temporary folder in `place` that is for `name`; what is still there at the end goes."""

    def make() -> tuple[int, str]:
        made = tempfile.mkdtemp(TEMPORARY, _prefix(name), place)
        try:
            return os.open(made, os.O_RDONLY), made
        except OSError:
            Path(made).rmdir()
            raise

    make_folders(place)
    clear_leavings(place, name)
    descriptor, made = _begin(make)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(descriptor)


def clear_leavings(place: Path, name: str | None = None) -> None:
    """Remove what a crash left of earlier writing for `name`, or for any. Never fails."""
    start = "." if name is None else _prefix(name)
    with suppress(OSError), os.scandir(place) as entries:
        left = [entry for entry in entries if entry.name.startswith(start)]
        for entry in left:
            if entry.name.endswith(TEMPORARY):
                _clear(entry)


def _clear(entry: os.DirEntry[str]) -> None:
    with suppress(OSError):
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                Path(entry.path).unlink()
        finally:
            os.close(descriptor)


def fill(folder: Path, tree: FileTree) -> None:
    """Write files that nobody reads before their folder has its name."""
    made: set[Path] = set()
    for name, content in tree:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        made.update(parent for parent in path.parents if parent.is_relative_to(folder))
        with path.open("xb", buffering=0) as file:
            write(file.fileno(), content)
    for parent in made:
        sync_folder(parent)


def write(descriptor: int, content: bytes) -> None:
    """Write all of it, readable for everybody, and have it on the disk."""
    os.fchmod(descriptor, 0o644)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def make_folders(path: Path) -> None:
    """Make a folder and those it lies in, each so that it outlives a power loss."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(path: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
