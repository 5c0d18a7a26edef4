"""The results volume, `<batch>/<place>/<attempt>.json`: read records and output, and delete folders of batches.

The place of a trial is its index; `BatchLock.place` knows it.
Its content is untrusted because trials write it: no link is followed, and everything goes through open descriptors.
"""

import errno
import heapq
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

from sweepledger.formats import record_json
from sweepledger.safe_open import FILE_FLAGS, FOLDER_FLAGS, NOT_REGULAR_ERRNOS, read_regular
from sweepledger.storage import storage_error, storage_errors
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.record import LARGEST_TRIAL_FILE
from sweepledger.structs.values import bytes_digest

T = TypeVar("T")

MOST_THRESHOLDS = 32 * 1024
"""Bytes of a file of thresholds that goes to git; two hundred steps take a third."""


def attempt_records(results: Path, batch: str, place: str) -> Iterator[bytes | None]:
    """Yield the record file of each attempt at a trial, in the order of names.

    A trial can write anything to its folder: a file that is too large is cut one byte after the limit, links,
    devices and folders are None, and files beyond the bounds of a trial are UNREAD. Raises StorageError if the
    volume itself fails.
    """
    # Text, not a Path: joining paths costs as much as opening the folder, and there may be 100,000.
    yield from _trial_records(f"{results}/{batch}/{place}")


def _trial_records(path: str, parent: int | None = None) -> Iterator[bytes | None]:
    """Yield the record files in a trial's folder, relative to an open folder."""
    with _trial_folder(path, parent) as folder:
        if folder is not None:
            with storage_errors(path), os.scandir(folder) as entries:
                names = (entry.name for entry in entries if entry.name.endswith(".json"))
                # Those that are read, and those that are counted: a trial can make a million names.
                first = heapq.nsmallest(record_json.MOST_RECORDS + record_json.MOST_COUNTED, names)
            size = 0
            for number, name in enumerate(first):
                if number >= record_json.MOST_RECORDS or size > record_json.MOST_RECORD_BYTES:
                    yield record_json.UNREAD
                    continue
                content = _read_file(name, folder)
                size += len(content) if content is not None and len(content) <= LARGEST_TRIAL_FILE else 0
                yield content


@contextmanager
def _trial_folder(path: str, parent: int | None = None) -> Iterator[int | None]:
    """Open a folder that trials may have replaced; None if it is missing, a link or no folder. Raises StorageError."""
    try:
        folder = _retry_stale(lambda: os.open(path, FOLDER_FLAGS, dir_fd=parent))
    except OSError as error:
        if error.errno not in NOT_REGULAR_ERRNOS:
            raise storage_error(path, error) from error
        yield None
        return
    try:
        yield folder
    finally:
        os.close(folder)


def _read_file(path: str, folder: int | None = None) -> bytes | None:
    with storage_errors(path):
        return _retry_stale(lambda: read_regular(path, LARGEST_TRIAL_FILE, dir_fd=folder))


def _retry_stale(action: Callable[[], T]) -> T:
    """Retry once if a network file system reports a stale handle for a name that it has just listed."""
    try:
        return action()
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
        return action()


def attempt_output(results: Path, batch: str, place: str) -> dict[str, tuple[str, str]]:
    """Return standard output and standard error of each attempt, by pod uid, in the order in which they ended."""
    folder = results / batch / place
    outputs: dict[str, tuple[str, str]] = {}
    if not folder.is_dir():
        return outputs
    for path in sorted(folder.iterdir(), key=lambda path: (path.lstat().st_mtime_ns, path.name)):
        if path.suffix in {".out", ".err"}:
            outputs[path.stem] = (_output(f"{path.stem}.out", folder), _output(f"{path.stem}.err", folder))
    return outputs


def _output(name: str, folder: Path) -> str:
    content = _read_file(str(folder / name)) or b""
    return content.decode(errors="replace") if len(content) <= LARGEST_TRIAL_FILE else ""


def begun_trials(results: Path, batch: str, pod: int | None = None) -> list[int]:
    """Return the sorted rows of a batch, or of one of its packs, that have a folder. Raises StorageError."""
    names = _names_below(f"{results}/{batch}" if pod is None else f"{results}/{batch}/{pod}")
    return sorted(int(name) for name in names if name.isdecimal())


def trial_files(results: Path, batch: str, place: str) -> list[str]:
    """Return the names in a trial's folder: `<pod uid>.out`, `.err` and `.json`, the record. Raises StorageError."""
    return sorted(_names_below(f"{results}/{batch}/{place}"))


def _names_below(path: str) -> list[str]:
    """Return the names in a folder; none if it is missing or no folder."""
    with _trial_folder(path) as folder:
        return [] if folder is None else _names(folder)


def read_output(results: Path, batch: str, place: str, name: str, start: int) -> bytes:
    """Return an output file's content from a position on, at most 1 MiB; empty if it is not a regular file.

    Raises StorageError.
    """
    path = f"{results}/{batch}/{place}"
    with _trial_folder(path) as folder:
        if folder is None:
            return b""
        try:
            descriptor = os.open(name, FILE_FLAGS, dir_fd=folder)
        except OSError as error:
            if error.errno in NOT_REGULAR_ERRNOS:
                return b""
            raise storage_error(f"{path}/{name}", error) from error
        try:
            is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            return os.pread(descriptor, LARGEST_TRIAL_FILE, start) if is_regular else b""
        finally:
            os.close(descriptor)


def newest_output(results: Path, batch: str, place: str) -> tuple[str, bytes]:
    """Return the pod uid of a trial's newest attempt with the head of its standard output; empty without one."""
    path = f"{results}/{batch}/{place}"
    with _trial_folder(path) as folder:
        if folder is None:
            return "", b""
        try:
            with os.scandir(folder) as entries:
                kept = [entry for entry in entries if entry.name.endswith(".out")]
                newest = max(kept, key=lambda one: one.stat(follow_symlinks=False).st_mtime_ns, default=None)
        except OSError as error:
            if error.errno in NOT_REGULAR_ERRNOS:  # a file was deleted meanwhile
                return "", b""
            raise storage_error(path, error) from error
        if newest is None:
            return "", b""
        return newest.name.removesuffix(".out"), _read_file(newest.name, folder) or b""


@dataclass(frozen=True)
class VolumeResults:
    """The results of all batches on a mounted volume."""

    folder: Path

    @property
    def counts_alone(self) -> bool:
        """Whether a record can count without its pod: yes, because each trial can only write to its own folder."""
        return True

    @property
    def is_common(self) -> bool:
        """Whether a failure for one batch affects all batches: yes, because one volume has all of them."""
        return True

    def records(self, batch: str, index: int, place: str) -> Iterator[bytes | None]:  # noqa: ARG002 - the place has it
        """Yield the records of a trial. Raises StorageError."""
        return attempt_records(self.folder, batch, place)

    def thresholds(self, batch: str, place: str, digest: str) -> str | None:
        """Return the file of thresholds with a digest that a trial has kept; None if there is none.

        Raises StorageError.
        """
        name = f"{digest.removeprefix('sha256:')}.json"
        with _trial_folder(f"{self.folder}/{batch}/{place}/thresholds") as folder:
            content = None if folder is None else _read_file(name, folder)
        if content is None or len(content) > MOST_THRESHOLDS or bytes_digest(content) != digest:
            return None
        try:
            return content.decode()
        except UnicodeDecodeError:
            return None

    def unconfirmed(self, batch: str) -> Mapping[tuple[int, str], str]:  # noqa: ARG002 - mounts keep trials apart
        """Return nothing: a trial can only write to its own folder."""
        return {}

    def has_begun(self, batch: str) -> bool:
        """Return whether the batch has a folder."""
        return (self.folder / batch).is_dir()

    def has_every_trial(self, lock: BatchLock) -> bool:
        """Return whether each trial of a batch has a folder: without one, it has no record. Raises StorageError."""
        pods = [None] if lock.run.pack is None else range(lock.pods)
        return sum(len(begun_trials(self.folder, lock.name, pod)) for pod in pods) >= lock.trials

    def last_change(self, batch: str) -> float | None:
        """Return when a folder of a trial was last created; None if there is none. Raises StorageError."""
        with storage_errors(self.folder / batch), suppress(FileNotFoundError):
            return (self.folder / batch).stat().st_mtime
        return None


MAX_DEPTH = 64
"""Levels of nested folders. Each keeps a descriptor open; sweepledger creates at most five."""


@dataclass(frozen=True)
class VolumeRoot:
    """The open root folder of a volume; every method raises StorageError."""

    place: Path
    root: int

    @classmethod
    @contextmanager
    def opened(cls, place: Path) -> Iterator["VolumeRoot"]:
        """Open a volume at its mount path."""
        with storage_errors(place):
            root = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield cls(place, root)
        finally:
            os.close(root)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode, which are equal for one volume at several paths."""
        status = os.fstat(self.root)
        return status.st_dev, status.st_ino

    def names(self) -> tuple[str, ...]:
        """Return the names in the root folder."""
        with storage_errors(self.place):
            return tuple(_names(self.root))

    def has_folder(self, name: str) -> bool:
        """Return whether the root contains a folder of this name; a link to a folder does not count."""
        with storage_errors(self.place / name):
            with suppress(FileNotFoundError):
                return stat.S_ISDIR(os.stat(name, dir_fd=self.root, follow_symlinks=False).st_mode)
            return False

    def newest(self, name: str) -> float:
        """Return the time of the last change in a folder, by the clock of the machine that made it."""
        times = [0.0]
        with self._folder(name) as top:
            for path, folders, files, folder in os.fwalk(".", onerror=_fail, dir_fd=top):
                if path.count("/") > MAX_DEPTH:
                    raise OSError(errno.ELOOP, f"holds folders nested deeper than {MAX_DEPTH}")
                times.append(os.fstat(folder).st_mtime)
                states = (os.stat(name, dir_fd=folder, follow_symlinks=False) for name in (*folders, *files))
                times += [state.st_mtime for state in states]
        return max(times)

    def records(self, name: str, index: int, place: str) -> Iterator[bytes | None]:  # noqa: ARG002 - the place has it
        """Yield the record files of a trial of a batch as `attempt_records` does."""
        with self._folder(name) as folder:
            yield from _trial_records(place, folder)

    def move(self, name: str, to: str) -> None:
        """Rename a folder atomically, but never onto a folder that is not empty."""
        with storage_errors(self.place / name):
            os.rename(name, to, src_dir_fd=self.root, dst_dir_fd=self.root)
            os.fsync(self.root)

    def remove(self, name: str) -> None:
        """Remove a folder with its content; links are removed, never followed."""
        with storage_errors(self.place / name):
            shutil.rmtree(name, dir_fd=self.root)

    @contextmanager
    def _folder(self, name: str) -> Iterator[int]:
        with storage_errors(self.place / name):
            folder = os.open(name, FOLDER_FLAGS, dir_fd=self.root)
            try:
                yield folder
            finally:
                os.close(folder)


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def _fail(error: OSError) -> NoReturn:
    raise error
