"""A committed spec that a command is about to change: what stands of it, and its text with the change."""

from dataclasses import dataclass
from functools import cached_property

from generator import spec
from generator.commands.workspace import Workspace
from generator.errors import RepositoryError, SpecError, UsageError
from generator.reader.edits import with_item
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.repo.git import uncommitted
from generator.structs.sweep import Sweep


@dataclass(frozen=True)
class Asking:
    """A sweep, its spec as it is checked out, and its batches there and where controllers look."""

    workspace: Workspace
    sweep: Sweep
    head: str
    base: str

    @classmethod
    def find(cls, workspace: Workspace, name: str) -> "Asking":
        """Open a sweep, for a commit on the branch that is checked out.

        Raises SpecError, UsageError, and RepositoryError unless there is one and the spec is committed.
        """
        (sweep,) = workspace.sweeps([name])
        repository = workspace.repository
        head, base = repository.commit("HEAD"), workspace.standing(None)
        if head is None or base is None:
            raise RepositoryError("nothing is committed yet, so nothing stands")
        if repository.branch() is None:
            raise RepositoryError(
                "no branch is checked out, so none would hold the commit",
                hint=f"`git switch {workspace.settings.branch}`, or `git switch -c NAME`; then run it again",
            )
        if uncommitted(repository, sweep.path) or sweep.path not in repository.files(head, sweep.path):
            raise RepositoryError(
                f"{sweep.path} has changes that are not committed",
                hint="commit or stash them, then run this again",
            )
        return cls(workspace, sweep, head, base)

    @cached_property
    def standing(self) -> tuple[StoredBatch, ...]:
        """The sweep's batches where controllers look."""
        found = batches.in_commit(self.workspace.repository, self.base)
        return batches.of_sweep(found, self.sweep.name)

    @cached_property
    def here(self) -> tuple[StoredBatch, ...]:
        """The sweep's batches in the commit that is checked out."""
        found = batches.in_commit(self.workspace.repository, self.head)
        return batches.of_sweep(found, self.sweep.name)

    def named(self, name: str) -> StoredBatch:
        """Find a batch that stands. Raises UsageError."""
        for batch in self.standing:
            if batch.name == name:
                return batch
        hint = f"it stands once it is on {self.workspace.settings.branch}"
        if all(batch.name != name for batch in self.here):
            hint = f"batches: {', '.join(batch.name for batch in self.standing) or 'none yet'}"
        raise UsageError(f"no batch {name!r} of {self.sweep.name} stands", hint=hint)

    def require_current(self) -> None:
        """Refuse to build on a checkout that lacks what controllers have seen. Raises RepositoryError."""
        held = {batch.folder for batch in self.here}
        lacking = [batch.folder for batch in self.standing if batch.folder not in held]
        if lacking:
            settings = self.workspace.settings
            raise RepositoryError(
                f"the commit that is checked out does not hold {lacking[0]}",
                hint=f"bring it here: `git pull {settings.remote} {settings.branch}`",
            )

    def edited(self, *items: tuple[str, object]) -> tuple[Sweep, bytes]:
        """Append items to lists of the spec; give the sweep that this asks for, and the text.

        Raises SpecError, and RepositoryError where the text cannot be changed safely.
        """
        path = self.workspace.root / self.sweep.path
        text = self.workspace.repository.read(self.head, self.sweep.path)[self.sweep.path].decode()
        try:
            for key, item in items:
                text = with_item(text, (key,), item)
        except ValueError as error:
            raise RepositoryError(
                f"{self.sweep.path} cannot be changed by a program: {error}",
                hint=f"add it by hand: {', '.join(f'{key}: {item}' for key, item in items)}",
            ) from error
        found = spec.parse(
            text.encode(), self.sweep.path, self.workspace.settings, beside=self.workspace.beside(path)
        )
        if isinstance(found, tuple):
            raise SpecError(found)
        return found, text.encode()
