"""What all checks look at: the commit that stands, its batches, and the work tree's."""

from dataclasses import dataclass
from functools import cached_property

from generator.commands.workspace import Workspace
from generator.formats import yaml
from generator.repo import batches
from generator.repo.batches import StoredBatch

UP_TO_ROOT = "../../../"


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
    def present(self) -> dict[str, StoredBatch]:
        """The work tree's batches, by name."""
        return {batch.name: batch for batch in batches.in_work_tree(self.workspace.root)}

    @cached_property
    def added(self) -> tuple[StoredBatch, ...]:
        """The work tree's batches that do not stand yet."""
        held = {batch.name for batch in self.standing}
        return tuple(batch for name, batch in self.present.items() if name not in held)


def bases_of(batch: StoredBatch) -> tuple[str, ...]:
    """Name the folders that a batch's kustomization builds on, relative to the repository."""
    listed = yaml.load(batch.tree.files.get("kustomization.yaml", b"{}")).get("resources", [])
    return tuple(str(entry).removeprefix(UP_TO_ROOT) for entry in listed if str(entry).startswith(UP_TO_ROOT))
