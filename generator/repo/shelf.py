"""A volume on which every batch has a folder, and how such a folder goes.

All is done through open descriptors, so that no link leads anywhere else: a trial may leave what it likes.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from generator.errors import StorageError
from generator.repo.volume import LARGEST_FILE
from generator.untrusted import read_regular

GONE = ".gone-"
"""Before the name of a folder that is being deleted: a crash leaves no half of a batch under its own name."""

DEEPEST = 64
"""Of folders in folders; each keeps a descriptor open, and nothing of ours makes more than five."""

FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Shelf:
    """The root of a volume, open; every method raises StorageError."""

    place: Path
    root: int

    @classmethod
    @contextmanager
    def opened(cls, place: Path) -> Iterator["Shelf"]:
        """Open a volume where it is mounted."""
        with _storage(place):
            root = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield cls(place, root)
        finally:
            os.close(root)

    @property
    def identity(self) -> tuple[int, int]:
        """Tell one volume from another, whatever their paths are."""
        found = os.fstat(self.root)
        return found.st_dev, found.st_ino

    def names(self) -> tuple[str, ...]:
        """List what lies at the root."""
        with _storage(self.place):
            return tuple(_names(self.root))

    def holds(self, name: str) -> bool:
        """Tell whether there is a folder of this name; a link to one is none."""
        with _storage(self.place / name):
            try:
                found = os.stat(name, dir_fd=self.root, follow_symlinks=False)
            except FileNotFoundError:
                return False
            return stat.S_ISDIR(found.st_mode)

    def newest(self, name: str) -> float:
        """Give when something in a folder was last changed, by the clock of whoever changed it."""
        with self._folder(name) as folder:
            return _newest(folder)

    def records(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Yield what each attempt of a batch left as its record, and in which of its trials' folders.

        Links and devices are passed over.
        """
        with self._folder(name) as folder:
            for index in _folders(folder):
                with _below(folder, index) as trial:
                    for file in _names(trial):
                        content = read_regular(file, LARGEST_FILE, dir_fd=trial) if _is_record(file) else None
                        if content is not None and len(content) <= LARGEST_FILE:
                            yield index, content

    def move(self, name: str, to: str) -> None:
        """Rename a folder at once, for good; never onto another one that holds something."""
        with _storage(self.place / name):
            os.rename(name, to, src_dir_fd=self.root, dst_dir_fd=self.root)
            os.fsync(self.root)

    def remove(self, name: str) -> None:
        """Remove a folder with all that is in it; of links themselves, never what they lead to."""
        with self._folder(name) as folder:
            _clear(folder)
            os.rmdir(name, dir_fd=self.root)

    @contextmanager
    def _folder(self, name: str) -> Iterator[int]:
        with _storage(self.place / name), _below(self.root, name) as folder:
            yield folder


@contextmanager
def _storage(path: Path) -> Iterator[None]:
    """Name the folder, as the system knows no more than a descriptor."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: {(error.strerror or str(error)).lower()}") from error


@contextmanager
def _below(parent: int, name: str) -> Iterator[int]:
    folder = os.open(name, FLAGS, dir_fd=parent)
    try:
        yield folder
    finally:
        os.close(folder)


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def _folders(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


def _is_record(file: str) -> bool:
    return file.endswith(".json")


def _newest(folder: int, depth: int = 0) -> float:
    if depth > DEEPEST:
        raise OSError(errno.ELOOP, f"holds folders nested deeper than {DEEPEST}")
    times = [os.fstat(folder).st_mtime]
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                with _below(folder, entry.name) as below:
                    times.append(_newest(below, depth + 1))
            else:
                times.append(entry.stat(follow_symlinks=False).st_mtime)
    return max(times)


def _clear(folder: int) -> None:
    with os.scandir(folder) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listed:
        if is_folder:
            with _below(folder, name) as below:
                _clear(below)
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
