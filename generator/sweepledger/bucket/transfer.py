"""Files between a pod's folders and the bucket: chunks named by content, each verified; the list is written last.

An interrupted upload leaves chunks that no list names; the next upload reuses them. Meanwhile the trial may write to
the folders: no link is followed, and a file that changes while it is read is not kept.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sweepledger.bucket import layout
from sweepledger.bucket.layout import CHUNK_BYTES, MOST_FILES, ObjectKind, ObjectName, StoredFile
from sweepledger.bucket.objects import AT_ONCE, Bucket, ahead, threads
from sweepledger.errors import StorageError
from sweepledger.formats.json import RejectedInput
from sweepledger.safe_open import FILE_FLAGS, FOLDER_FLAGS, NOT_REGULAR_ERRNOS, open_below
from sweepledger.storage import storage_error, storage_errors

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileChangedError(Exception):
    """A file was written while it was read, so the content may be inconsistent."""


class InterruptedUploadError(Exception):
    """Something more urgent must be saved first."""


class DamagedFileError(StorageError):
    """Content that a list names is missing in the bucket, or differs."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A regular file in a folder, as it was when the folder was listed."""

    path: str
    """Below the folder."""
    bytes: int
    changed: int
    """Nanoseconds."""


@dataclass(frozen=True)
class FoundFiles:
    """The regular files of a folder, sorted, and how many were left out: links, devices, odd names, too many."""

    files: tuple[FoundFile, ...] = ()
    left_out: int = 0


def find_files(root: str, below: str, *, is_flat: bool = False) -> FoundFiles:
    """Return the files below a folder of a root, by relative path; `flat` leaves out subfolders.

    Raises StorageError.
    """
    files: list[FoundFile] = []
    left_out = 0
    try:
        for found in _walk(root, below, is_flat=is_flat):
            if isinstance(found, FoundFile) and len(files) < MOST_FILES:
                files.append(found)
            else:
                left_out += 1
    except OSError as error:
        raise storage_error(f"{root}/{below}", error) from error
    return FoundFiles(tuple(sorted(files, key=lambda file: file.path)), left_out)


def _walk(root: str, below: str, *, is_flat: bool) -> Iterator[FoundFile | None]:
    """Yield the files below a folder; None for each entry that is not a regular file."""
    # Paths wait, not descriptors: a trial may make more folders than a process may open.
    waiting = [""]
    while waiting:
        path = waiting.pop()
        try:
            folder = open_below(root, [part for part in f"{below}/{path}".split("/") if part], FOLDER_FLAGS)
        except OSError as error:
            if error.errno not in NOT_REGULAR_ERRNOS | {errno.EACCES}:
                raise
            if path:
                yield None
            continue  # missing, removed meanwhile, a link, or closed to us
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    place = f"{path}{entry.name}"
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode) and is_flat:
                        continue
                    if stat.S_ISDIR(status.st_mode) and layout.is_plain(f"{place}/x"):
                        waiting.append(f"{place}/")
                    elif stat.S_ISREG(status.st_mode) and layout.is_plain(place):
                        yield FoundFile(place, status.st_size, status.st_mtime_ns)
                    else:
                        yield None
        except FileNotFoundError:
            continue  # removed meanwhile
        finally:
            os.close(folder)


@dataclass
class Uploader:
    """Writes the files of one attempt."""

    bucket: Bucket
    batch: str
    index: int
    uid: str
    key: bytes | None = None
    """The key of seals."""
    is_interrupted: Callable[[], bool] = bool
    """Whether an upload of files must end, to be continued later."""
    sent_bytes: int = 0
    _kept: set[str] | None = None
    """Chunks that the bucket has."""

    def save(self, kind: ObjectKind, content: bytes, number: int = 0) -> ObjectName:
        """Write an object of the attempt. Raises StorageError."""
        name = ObjectName(self.batch, kind, self.index, self.uid, layout.digest(content), number)
        name = name.sealed(self.key)
        self.bucket.put(name.key, content)
        return name

    def save_files(self, kind: ObjectKind, root: str, paths: Iterable[str], number: int = 0) -> ObjectName:
        """Write files below a folder, and then their list. Raises StorageError, FileChangedError."""
        if self._kept is None:  # what an interrupted upload has left
            found = self.bucket.list(layout.chunk_key(self.batch, self.index, ""))
            self._kept = {listed.key.rpartition("/")[2] for listed in found}
        sent: dict[str, Future[None]] = {}
        with threads(AT_ONCE) as pool:
            try:
                stored = tuple(self._store(pool, sent, root, path) for path in paths)
                for future in sent.values():
                    future.result()
            finally:
                pool.shutdown(cancel_futures=True)
        try:
            content = layout.format_list(stored)
        except ValueError as error:
            raise StorageError(f"{root}: {error}") from error
        return self.save(kind, content, number)

    def delete_chunks(self, chunks: Iterable[str]) -> None:
        """Delete content that no list names any more. Raises StorageError."""
        unused = sorted(chunks)
        self._kept = None
        self.bucket.delete(layout.chunk_key(self.batch, self.index, chunk) for chunk in unused)

    def _store(
        self, pool: "ThreadPoolExecutor", sent: "dict[str, Future[None]]", root: str, path: str
    ) -> StoredFile:
        """Send the chunks of a file that the bucket lacks."""
        try:
            descriptor = open_below(root, path.split("/"), FILE_FLAGS)
        except OSError as error:
            raise FileChangedError(path) from error  # it was there when the folder was listed
        try:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise FileChangedError(path)
            whole, chunks, size = hashlib.sha256(), list[str](), 0
            while (chunk := _read_chunk(descriptor, root, path)) or not chunks:
                if self.is_interrupted():
                    raise InterruptedUploadError(path)
                whole.update(chunk)
                size += len(chunk)
                chunks.append(layout.digest(chunk))
                if len(sent) >= AT_ONCE:
                    sent.pop(next(iter(sent))).result()
                if chunks[-1] not in sent and chunks[-1] not in (self._kept or ()):
                    sent[chunks[-1]] = pool.submit(self._put_chunk, chunks[-1], chunk)
                if len(chunk) < CHUNK_BYTES or size > before.st_size:
                    break  # the end, or it grows without one
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if (size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise FileChangedError(path)
        return StoredFile(path, size, whole.hexdigest(), tuple(chunks))

    def _put_chunk(self, sha256: str, content: bytes) -> None:
        self.bucket.put(layout.chunk_key(self.batch, self.index, sha256), content)
        if self._kept is not None:
            self._kept.add(sha256)
        self.sent_bytes += len(content)


def _read_chunk(descriptor: int, root: str, path: str) -> bytes:
    chunk = bytearray()
    try:
        while len(chunk) < CHUNK_BYTES and (part := os.read(descriptor, CHUNK_BYTES - len(chunk))):
            chunk += part
    except OSError as error:
        raise storage_error(f"{root}/{path}", error) from error
    return bytes(chunk)


def read(bucket: Bucket, name: ObjectName) -> bytes | None:
    """Return an object; None if it is missing or does not match its name. Raises StorageError."""
    content = bucket.get(name.key)
    return None if content is None or layout.digest(content) != name.sha256 else content


def read_list(bucket: Bucket, name: ObjectName) -> tuple[StoredFile, ...] | None:
    """Return the files of a list; None if there is no such list. Raises StorageError."""
    content = read(bucket, name)
    try:
        return None if content is None else layout.parse_list(content)
    except RejectedInput:
        return None


def contents(
    bucket: Bucket, batch: str, index: int, files: Iterable[StoredFile]
) -> Iterator[tuple[StoredFile, Iterator[bytes]]]:
    """Yield files with their chunks, which must be read in this order. Raises StorageError, DamagedFileError."""
    wanted = tuple(files)
    keys = ((layout.chunk_key(batch, index, sha256),) for file in wanted for sha256 in file.chunks)
    chunks = ahead(bucket.get, keys)
    for file in wanted:
        yield file, _verified(bucket, file, chunks)


def _verified(bucket: Bucket, file: StoredFile, chunks: Iterator[bytes | None]) -> Iterator[bytes]:
    """Yield the chunks of a file, each compared with its digest, and the file at the end."""
    whole, size = hashlib.sha256(), 0
    for sha256 in file.chunks:
        chunk = next(chunks)
        if chunk is None or layout.digest(chunk) != sha256:
            state = "is missing" if chunk is None else "has other content"
            raise DamagedFileError(f"{bucket.url}: {file.path!r}: chunk {sha256[:12]} {state}")
        whole.update(chunk)
        size += len(chunk)
        yield chunk
    if size != file.bytes or whole.hexdigest() != file.sha256:
        raise DamagedFileError(f"{bucket.url}: {file.path!r} is not the file that its list names")


def open_new(path: Path, flags: int) -> int:
    """Open a file with these flags in a folder that is created if missing and must not be a link."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parent = os.open(path.parent, FOLDER_FLAGS)
    try:
        return os.open(path.name, flags, 0o644, dir_fd=parent)
    finally:
        os.close(parent)


def restore(bucket: Bucket, name: ObjectName, into: str, *, most_bytes: int) -> bool:
    """Write the files of a list into an empty folder; False if there is no such list.

    Raises StorageError, DamagedFileError.
    """
    files = read_list(bucket, name)
    if files is None:
        return False
    if sum(file.bytes for file in files) > most_bytes:
        raise DamagedFileError(f"{bucket.url}/{name.key}: has more than {most_bytes} bytes")
    for file, chunks in contents(bucket, name.batch, name.index, files):
        path = Path(into, file.path)
        with storage_errors(path), os.fdopen(open_new(path, CREATE_FLAGS), "wb") as target:
            for chunk in chunks:
                target.write(chunk)
    return True


def numbered(
    bucket: Bucket, batch: str, index: int, key: bytes | None, kind: ObjectKind = ObjectKind.CHECKPOINT
) -> list[ObjectName]:
    """Return the objects of a kind that sidecars wrote, the newest first. Raises StorageError."""
    own = [name for name in names(bucket, batch, kind, index) if name.is_sealed(key)]
    return sorted(own, key=lambda name: (name.number, name.uid, name.sha256), reverse=True)


def names(bucket: Bucket, batch: str, kind: ObjectKind, index: int) -> list[ObjectName]:
    """Return the names of the objects of a kind that a trial has. Raises StorageError."""
    listed = bucket.list(layout.prefix(batch, kind, index))
    parsed = (layout.parse(batch, kind, found.key) for found in listed)
    return [name for name in parsed if name is not None and name.index == index]
