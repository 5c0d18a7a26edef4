"""Where a stored batch's files are, and what they hold once somebody asks.

A repository keeps thousands of batches for ever, and most questions are about a few of them. Whether two
folders hold the same is told by git's own ids: those of the work tree are computed from its bytes, as its
index may be told to look away (`assume-unchanged`, filters, a monitor).
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from generator.repo.files import list_folder, read_file
from generator.repo.git import Repository
from generator.structs.tree import FileTree

SHA1_DIGITS = 40
"""Ids of another length are SHA-256."""


def blob_id(content: bytes, *, like: str = "") -> str:
    """Give the id that git has for a file's content, in the form of another id of the repository."""
    framed = b"blob %d\0" % len(content) + content
    if len(like) > SHA1_DIGITS:
        return hashlib.sha256(framed).hexdigest()
    return hashlib.sha1(framed, usedforsecurity=False).hexdigest()


class Blobs:
    """The blobs of a repository, each read once."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._held: dict[str, bytes] = {}

    def __contains__(self, identity: str) -> bool:
        return identity in self._held

    def __len__(self) -> int:
        return len(self._held)

    def read(self, identities: Iterable[str]) -> None:
        """Fetch what is not held yet, with one process."""
        wanted = set(identities) - self._held.keys()
        self._held |= self._repository.blobs(wanted)

    def __getitem__(self, identity: str) -> bytes:
        if identity not in self._held:
            self.read([identity])
        return self._held[identity]


@dataclass(frozen=True)
class InCommit:
    """Files of a commit: known by their ids, read when asked for."""

    ids: Mapping[str, str]
    blobs: Blobs = field(compare=False, repr=False)
    locks: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """Ids of the lock files of all batches of the commit: whoever asks for one mostly asks for many."""

    def paths(self) -> tuple[str, ...]:
        """List the files."""
        return tuple(sorted(self.ids))

    def read(self, path: str) -> bytes:
        """Give one file. Raises KeyError."""
        identity = self.ids[path]
        if identity in self.locks and identity not in self.blobs:
            self.blobs.read(self.locks)
        return self.blobs[identity]

    def tree(self) -> FileTree:
        """Give every file."""
        self.blobs.read(self.ids.values())
        return FileTree({path: self.blobs[identity] for path, identity in self.ids.items()})

    def blob_ids(self, *, like: str = "") -> Mapping[str, str]:  # noqa: ARG002 - they are like all others
        """Give the ids."""
        return self.ids


@dataclass(frozen=True)
class OnDisk:
    """Files of the work tree: listed now, read when asked for."""

    folder: Path
    names: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path) -> "OnDisk":
        """List a folder. Raises StorageError for links and devices."""
        return cls(folder, list_folder(folder))

    def paths(self) -> tuple[str, ...]:
        """List the files."""
        return self.names

    def read(self, path: str) -> bytes:
        """Give one file. Raises KeyError, StorageError."""
        if path not in self.names:
            raise KeyError(path)
        return read_file(self.folder / path)

    def tree(self) -> FileTree:
        """Give every file. Raises StorageError."""
        return FileTree({name: self.read(name) for name in self.names})

    @cached_property
    def _sha1(self) -> Mapping[str, str]:
        return {name: blob_id(self.read(name)) for name in self.names}

    def blob_ids(self, *, like: str = "") -> Mapping[str, str]:
        """Compute the ids from the bytes. Raises StorageError."""
        if len(like) > SHA1_DIGITS:
            return {name: blob_id(self.read(name), like=like) for name in self.names}
        return self._sha1


@dataclass(frozen=True)
class InMemory:
    """Files that are a value already."""

    held: FileTree

    def paths(self) -> tuple[str, ...]:
        """List the files."""
        return tuple(self.held.files)

    def read(self, path: str) -> bytes:
        """Give one file. Raises KeyError."""
        return self.held[path]

    def tree(self) -> FileTree:
        """Give every file."""
        return self.held

    def blob_ids(self, *, like: str = "") -> Mapping[str, str]:
        """Compute the ids."""
        return {path: blob_id(content, like=like) for path, content in self.held}


Contents = InCommit | OnDisk | InMemory
