"""What all checks look at: the commit that stands, its batches, and the work tree's."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from generator import policy
from generator.commands import committed
from generator.commands.workspace import SETTINGS_FILE, Workspace
from generator.errors import RepositoryError
from generator.formats.lock import LOCK_FILE
from generator.render.bases import LAUNCHER
from generator.render.overlay import BASES
from generator.repo import batches, files
from generator.repo.batches import StoredBatch
from generator.repo.contents import blob_id
from generator.repo.git import Entry, reachable_trees, uncommitted
from generator.structs.settings import Settings
from generator.structs.tree import FileTree

BASE = "base/"
KUSTOMIZATION = "kustomization.yaml"
VERSION = re.compile(r"base/(?:[^/]+/)+?v[0-9]+(?=/)", re.ASCII)


@dataclass(frozen=True)
class Scene:
    """A repository about to be merged onto a commit."""

    workspace: Workspace
    base: str | None
    """The commit that stands; None in a repository without one."""
    month: str | None = None
    """Whose budgets count; None: that of the commit that stands."""

    @cached_property
    def standing(self) -> tuple[StoredBatch, ...]:
        """The batches of the commit that stands; one that was broken by force, as it is mended now."""
        found = batches.in_commit(self.workspace.repository, self.base)
        here = {batch.folder: batch for batch in self.present}
        return tuple(
            self._mended(batch, here[batch.folder]) if batch.folder in here else batch for batch in found
        )

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
        return committed.standing_settings(self.workspace.repository, self.base)

    def settings_of(self, batch: StoredBatch) -> Settings:
        """Choose what a batch is judged by: what stands, by the settings that stand."""
        stands = SETTINGS_FILE in self.entries and any(batch.name == one.name for one in self.standing)
        return self.settings if stands else self.workspace.settings

    @cached_property
    def bases(self) -> FileTree:
        """Everything below `base/` in the work tree but Python's caches. Raises StorageError."""
        return files.read_sources(self.workspace.root / BASE)

    @cached_property
    def changed_bases(self) -> frozenset[str]:
        """Paths below `base/`, from the root, that differ from the commit that stands, or are in one only."""
        held = {path: entry.id for path, entry in self.entries.items() if _is_source(path)}
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

    def _mended(self, stood: StoredBatch, found: StoredBatch) -> StoredBatch:
        """Choose the work tree's version if the base's is broken, and its history once had this one."""
        if not (batches.difference(stood, found) and is_broken(stood) and batches.legible([found])):
            return stood
        repository = self.workspace.repository
        tree = repository.tree_id("HEAD", found.folder)
        is_committed = tree is not None and not uncommitted(repository, found.folder)
        once = is_committed and tree in reachable_trees(repository, [self.base], found.folder)
        return found if once else stood


def is_broken(batch: StoredBatch) -> bool:
    """Tell whether a batch runs that can never be recorded: somebody merged it past the check."""
    return batch.is_active and not batches.legible([batch])


def _is_source(path: str) -> bool:
    return path.startswith(BASE) and files.CACHE not in path.split("/")


def bases_of(batch: StoredBatch) -> tuple[str, ...]:
    """Name the folders that a batch was made from or builds on, relative to the repository.

    Its lock is one witness, its kustomization another: a lock that says too little frees nothing.
    """
    try:
        named = {LAUNCHER, BASES[batch.lock.shape], *batch.lock.bases}
    except RepositoryError:  # whatever it was made from
        named = {LAUNCHER, *BASES.values()}
    if KUSTOMIZATION in batch.contents.paths():
        named.update(policy.closure(batch.contents.read(KUSTOMIZATION)))
    return tuple(f"{BASE}{name}" for name in sorted(named))


def load_bases(stored: Iterable[StoredBatch]) -> None:
    """Read what `bases_of` asks for, of many batches with one process."""
    batches.load(stored, LOCK_FILE, KUSTOMIZATION)
