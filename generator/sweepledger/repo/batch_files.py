"""The files of one batch, in a commit, on disk or in memory, read on first use.

A repository contains thousands of batches, and most commands read few of them. Two folders have the same
content if their blob ids are equal. Blob ids of the work tree are computed from its bytes, because git's index
can be configured to ignore changes (`assume-unchanged`, filters, a monitor).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sweepledger.errors import StorageError
from sweepledger.formats.running_yaml import RUNNING_FILE
from sweepledger.repo.files import list_folder
from sweepledger.repo.git import Checkout, Repository
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.values import blob_id

KUSTOMIZATION = "kustomization.yaml"
FEW_GROUPS = 1
"""Groups of locks that are read alone; who reads more reads all, except in a partial clone."""


class BlobCache:
    """The blobs of a repository, each read once."""

    def __init__(self, repository: Repository, locks: Mapping[str, Collection[str]] | None = None) -> None:
        self._repository = repository
        self._blobs: dict[str, bytes] = {}
        self._locks = locks or {}
        """The batch locks of a commit, by group: a reader of one usually needs those of the group."""
        self._groups_read = 0

    def __contains__(self, identity: str) -> bool:
        return identity in self._blobs

    def __len__(self) -> int:
        return len(self._blobs)

    def read(self, identities: Iterable[str]) -> None:
        """Read the blobs that are not in the cache, with one process."""
        self._blobs |= self._repository.blobs(set(identities) - self._blobs.keys())

    def read_locks(self, group: str, wanted: str) -> None:
        """Read the locks of a group with one process, and all of the commit once several groups were read."""
        if wanted not in self._locks.get(group, ()):
            return
        self._groups_read += 1
        is_wide = self._groups_read > FEW_GROUPS and self._repository.promisor is None
        self.read(set[str]().union(*self._locks.values()) if is_wide else self._locks[group])

    def __getitem__(self, identity: str) -> bytes:
        if identity not in self._blobs:
            self.read([identity])
        return self._blobs[identity]


@dataclass(frozen=True)
class CommitFiles:
    """Files of a commit: listed with their ids, read on demand."""

    blob_ids: Mapping[str, str]
    blobs: BlobCache = field(compare=False, repr=False)
    group: str = field(default="", compare=False, repr=False)
    """The batches whose locks are read together."""

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return tuple(sorted(self.blob_ids))

    def read(self, path: str) -> bytes:
        """Read one file. Raises KeyError."""
        identity = self.blob_ids[path]
        if identity not in self.blobs:
            self.blobs.read_locks(self.group, identity)
        return self.blobs[identity]


@dataclass(frozen=True)
class DiskFiles:
    """Files of the work tree: listed and read on demand."""

    root: Path
    place: str
    """The folder, relative to the root."""
    blobs: BlobCache = field(compare=False, repr=False)
    """The blobs of the repository."""
    committed: Mapping[str, str] = field(compare=False, repr=False)
    """The blob ids of a folder that contains exactly these files; empty if that is not known."""
    checkout: Checkout = field(compare=False, repr=False)
    """What git has in place of these files."""

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The files. Raises StorageError for links and devices."""
        if self.committed:
            return tuple(sorted(self.committed))
        return tuple(sorted({*list_folder(self.root / self.place), *self.checkout.hidden_below(self.place)}))

    def read(self, path: str) -> bytes:
        """Read one file. Raises KeyError, StorageError."""
        if path not in self.paths:
            raise KeyError(path)
        content = self.checkout.read(f"{self.place}/{path}", self.committed.get(path))
        if content is None:
            raise StorageError(f"{self.root / self.place / path}: No such file or directory")
        return content

    @cached_property
    def blob_ids(self) -> Mapping[str, str]:
        """The blob ids, computed if git does not know them. Raises StorageError."""
        return self.committed or {name: blob_id(self.read(name)) for name in self.paths}


@dataclass(frozen=True)
class BatchAsMerged:
    """The files of a batch as merged, without its current running state."""

    files: "StoredFiles"
    """Its files, with both."""
    kustomization: bytes
    """The kustomization as it was merged."""

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The files. Raises StorageError."""
        return tuple(path for path in self.files.paths if path != RUNNING_FILE)

    def read(self, path: str) -> bytes:
        """Read one file. Raises KeyError, StorageError."""
        if path == RUNNING_FILE:
            raise KeyError(path)
        return self.kustomization if path == KUSTOMIZATION else self.files.read(path)

    @cached_property
    def blob_ids(self) -> Mapping[str, str]:
        """The blob ids. Raises StorageError."""
        ids = {path: found for path, found in self.files.blob_ids.items() if path != RUNNING_FILE}
        return ids | {KUSTOMIZATION: blob_id(self.kustomization)}


StoredFiles = CommitFiles | DiskFiles | FileTree
BatchFiles = StoredFiles | BatchAsMerged
