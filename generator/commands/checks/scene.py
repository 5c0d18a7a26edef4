"""What all checks look at: the commit that stands, its batches, and the work tree's."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from generator.commands import committed
from generator.commands.workspace import Workspace
from generator.repo import batches, files
from generator.repo.batches import StoredBatch
from generator.repo.contents import blob_id
from generator.repo.git import Entry
from generator.structs.settings import Settings
from generator.structs.tree import FileTree

BASE = "base/"
VERSION = re.compile(r"base/(?:[^/]+/)+?v[0-9]+(?=/)", re.ASCII)


@dataclass(frozen=True)
class Scene:
    """A repository about to be merged onto a commit."""

    workspace: Workspace
    base: str | None
    """The commit that stands; None in a repository without one."""

    @cached_property
    def standing(self) -> tuple[StoredBatch, ...]:
        """The batches of the commit that stands."""
        return batches.in_commit(self.workspace.repository, self.base)

    @cached_property
    def present(self) -> tuple[StoredBatch, ...]:
        """The work tree's batches, active and archived."""
        return batches.in_work_tree(self.workspace.root)

    @cached_property
    def added(self) -> tuple[StoredBatch, ...]:
        """The work tree's batches that do not stand yet."""
        held = {batch.name for batch in self.standing}
        return tuple(batch for batch in self.present if batch.name not in held)

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """Every file of the commit that stands, by path."""
        return self.workspace.repository.files(self.base)

    @cached_property
    def index(self) -> Mapping[str, Entry]:
        """Every file that the next commit would hold, by path."""
        return self.workspace.repository.index()

    @cached_property
    def settings(self) -> Settings:
        """The settings that stand; the defaults where they cannot be read."""
        found = committed.settings(self.workspace.repository, self.base)
        return found if isinstance(found, Settings) else Settings()

    @cached_property
    def bases(self) -> FileTree:
        """Everything below `base/` in the work tree. Raises StorageError."""
        return files.read_folder(self.workspace.root / BASE)

    @cached_property
    def changed_bases(self) -> frozenset[str]:
        """Paths below `base/`, from the root, that differ from the commit that stands, or are in one only."""
        held = {path: entry.id for path, entry in self.entries.items() if path.startswith(BASE)}
        like = next(iter(held.values()), "")
        found = {f"{BASE}{path}": blob_id(content, like=like) for path, content in self.bases}
        return frozenset(path for path in held.keys() | found.keys() if held.get(path) != found.get(path))

    @cached_property
    def versions(self) -> frozenset[str]:
        """The version folders below `base/` that the commit that stands has, such as `base/trial/v1`."""
        found = (VERSION.match(path) for path in self.entries)
        return frozenset(one[0] for one in found if one)

    @cached_property
    def is_behind(self) -> bool:
        """Tell whether the commit that stands is not yet part of what is checked out."""
        repository = self.workspace.repository
        if self.base is None or repository.commit("HEAD") is None:
            return False
        return not repository.holds("HEAD", self.base)


def bases_of(batch: StoredBatch) -> tuple[str, ...]:
    """Name the folders that a batch was made from or builds on, relative to the repository."""
    return tuple(f"{BASE}{name}" for name in batch.lock.bases)
