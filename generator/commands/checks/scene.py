"""What all checks look at: the commit that stands, its batches, and the work tree's."""

from dataclasses import dataclass, field
from functools import cached_property

from generator.commands.workspace import Workspace
from generator.repo import batches
from generator.repo.batches import StoredBatch


@dataclass(frozen=True)
class Scene:
    """A repository about to be merged onto a commit."""

    workspace: Workspace
    base: str | None
    """The commit that stands; None in a repository without one."""
    _bases: dict[str, dict[str, bytes]] = field(default_factory=dict)

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

    def base_files(self, folder: str) -> dict[str, bytes]:
        """Give a base's files as the commit that stands holds them; read once."""
        if folder not in self._bases:
            self._bases[folder] = self.workspace.repository.read(self.base, folder)
        return self._bases[folder]


def bases_of(batch: StoredBatch) -> tuple[str, ...]:
    """Name the folders that a batch was made from or builds on, relative to the repository."""
    return tuple(f"base/{name}" for name in batch.lock.bases)
