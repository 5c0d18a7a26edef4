"""The files of one batch, in a commit, on disk or in memory, read on first use.

A repository contains thousands of batches, and most commands read few of them. Two folders have the same
content if their blob ids are equal. Blob ids of the work tree are computed from its bytes, because git's index
can be configured to ignore changes (`assume-unchanged`, filters, a monitor).
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from sweepledger.repo.files import list_folder, read_file
from sweepledger.repo.git import Repository
from sweepledger.structs.file_tree import FileTree

SHA1_DIGITS = 40
"""Ids of another length are SHA-256."""
LARGE = 32 * 1024
"""Bytes from which a file is probably the launcher."""


def blob_id(content: bytes, *, like: str = "") -> str:
    """Return git's id of a file's content; `like` is another id of the repository, which shows its hash."""
    is_sha256 = len(like) > SHA1_DIGITS
    return (_large_id if len(content) > LARGE else _id)(content, is_sha256=is_sha256)


def _id(content: bytes, *, is_sha256: bool) -> str:
    head = b"blob %d\0" % len(content)
    digest = hashlib.sha256(head) if is_sha256 else hashlib.sha1(head, usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


_large_id = lru_cache(maxsize=4)(_id)
"""Thousands of overlays have the same copy of the launcher: to compare it with the last one is faster than a digest."""


class BlobCache:
    """The blobs of a repository, each read once."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._blobs: dict[str, bytes] = {}

    def __contains__(self, identity: str) -> bool:
        return identity in self._blobs

    def __len__(self) -> int:
        return len(self._blobs)

    def read(self, identities: Iterable[str]) -> None:
        """Read the blobs that are not in the cache, with one process."""
        self._blobs |= self._repository.blobs(set(identities) - self._blobs.keys())

    def __getitem__(self, identity: str) -> bytes:
        if identity not in self._blobs:
            self.read([identity])
        return self._blobs[identity]


@dataclass(frozen=True)
class CommitFiles:
    """Files of a commit: listed with their ids, read on demand."""

    ids: Mapping[str, str]
    blobs: BlobCache = field(compare=False, repr=False)
    locks: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """Ids of the batch locks of the whole commit: a reader of one usually needs all."""

    def paths(self) -> tuple[str, ...]:
        """List the files."""
        return tuple(sorted(self.ids))

    def read(self, path: str) -> bytes:
        """Read one file. Raises KeyError."""
        identity = self.ids[path]
        if identity in self.locks and identity not in self.blobs:
            self.blobs.read(self.locks)
        return self.blobs[identity]

    def tree(self) -> FileTree:
        """Read all files."""
        self.blobs.read(self.ids.values())
        return FileTree({path: self.blobs[identity] for path, identity in self.ids.items()})

    def blob_ids(self, *, like: str = "") -> Mapping[str, str]:  # noqa: ARG002 - stored ids are of the repository's hash
        """Return the blob ids."""
        return self.ids


@dataclass(frozen=True)
class DiskFiles:
    """Files of the work tree: listed now, read on demand."""

    folder: Path
    names: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path) -> "DiskFiles":
        """List a folder. Raises StorageError for links and devices."""
        return cls(folder, list_folder(folder))

    def paths(self) -> tuple[str, ...]:
        """List the files."""
        return self.names

    def read(self, path: str) -> bytes:
        """Read one file. Raises KeyError, StorageError."""
        if path not in self.names:
            raise KeyError(path)
        return read_file(self.folder / path)

    def tree(self) -> FileTree:
        """Read all files. Raises StorageError."""
        return FileTree({name: self.read(name) for name in self.names})

    @cached_property
    def _sha1(self) -> Mapping[str, str]:
        return {name: blob_id(self.read(name)) for name in self.names}

    def blob_ids(self, *, like: str = "") -> Mapping[str, str]:
        """Compute the blob ids. Raises StorageError."""
        if len(like) > SHA1_DIGITS:
            return {name: blob_id(self.read(name), like=like) for name in self.names}
        return self._sha1


@dataclass(frozen=True)
class MemoryFiles:
    """Files in memory."""

    files: FileTree

    def paths(self) -> tuple[str, ...]:
        """List the files."""
        return tuple(self.files.files)

    def read(self, path: str) -> bytes:
        """Read one file. Raises KeyError."""
        return self.files[path]

    def tree(self) -> FileTree:
        """Read all files."""
        return self.files

    def blob_ids(self, *, like: str = "") -> Mapping[str, str]:
        """Compute the blob ids."""
        return {path: blob_id(content, like=like) for path, content in self.files}


BatchFiles = CommitFiles | DiskFiles | MemoryFiles
