"""`sweep generate --push`: batches that a merge asked for, as one commit on the branch, and nothing else.

For repositories with `generate: on-merge`. The specs are read where the branch stands, in a work tree of
its own, so what lies here, or came to the branch meanwhile, changes nothing.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from generator.commands import generate, mending
from generator.commands.generate import Generated
from generator.commands.workspace import SETTINGS_FILE, Workspace
from generator.errors import UsageError
from generator.repo.git import Change, Repository, publish
from generator.structs.settings import Generate


@dataclass
class _Making:
    """Makes the change for a commit of the branch; keeps what it was."""

    workspace: Workspace
    names: tuple[str, ...]
    made: tuple[Generated, ...] = field(default=())

    def at(self, commit: str) -> Change | None:
        with _checked_out(self.workspace.repository, commit) as folder:
            there = Workspace.find(folder)
            _suits(there)
            found = generate.plan(there, there.sweeps(self.names), base=commit)
            self.made = tuple(one for one in found if one.batch)
            writes: dict[str, bytes] = {}
            for one in self.made:
                writes |= mending.written(there, one)
            held = there.repository.files(commit)
        taken = sorted(writes.keys() & held.keys())
        assert not taken, f"a new batch brings new files only, but {taken[0]} is there"
        return Change(_message(self.made), writes) if self.made else None


def push(workspace: Workspace, names: Iterable[str] = ()) -> tuple[tuple[Generated, ...], str | None]:
    """Commit the missing batches onto the branch that controllers follow; give them and the commit.

    Raises UsageError where the settings say that authors generate, SpecError, RepositoryError where the
    server refuses, ContentionError.
    """
    _suits(workspace)
    making = _Making(workspace, tuple(names))
    commit = publish(workspace.repository, workspace.settings.remote, workspace.settings.branch, making.at)
    return making.made, commit


def _suits(workspace: Workspace) -> None:
    if workspace.settings.generate is not Generate.ON_MERGE:
        raise UsageError(
            f"{SETTINGS_FILE} does not say `generate: on-merge`",
            hint="`sweep generate`, and commit what it writes, in the pull request",
        )


def _message(made: Iterable[Generated]) -> str:
    counts = {one.sweep.name: one.batch.lock.trials for one in made if one.batch}
    body = "".join(f"Batch: {one.batch.name}\n" for one in made if one.batch)
    return f"generate({', '.join(counts)}): {sum(counts.values())} trials\n\n{body}"


@contextmanager
def _checked_out(repository: Repository, commit: str) -> Iterator[Path]:
    """Lay a commit out in a folder of its own, and clear it away again."""
    with tempfile.TemporaryDirectory(prefix="sweep-generate-") as scratch:
        folder = Path(scratch) / "tree"
        repository.run("worktree", "add", "--quiet", "--detach", str(folder), commit)
        try:
            yield folder
        finally:
            repository.run("worktree", "remove", "--force", str(folder))
