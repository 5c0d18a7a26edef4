"""`sweep generate` and `sweep update`: write the next batch of each sweep; `--push` commits it.

Read this first, then `generation/next_batch.py`: spec -> sweep -> trials -> overlay -> work tree.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sweepledger.commands.generation.next_batch import (
    Generated,
    added_files,
    plan_batches,
    with_code_warnings,
    write_batches,
)
from sweepledger.commands.repository.workspace import SETTINGS_FILE, Target, Workspace
from sweepledger.errors import UsageError
from sweepledger.repo.git import Change, Repository, without_repository_filters
from sweepledger.structs.settings import GenerateMode


def generate(
    workspace: Workspace, names: Iterable[str] = (), *, check: bool = False, base: str | None = None
) -> tuple[Generated, ...]:
    """Write the next batch of each sweep; with `check` only return it.

    Raises SpecError for wrong specs, and RepositoryError if a generated file was edited by hand; nothing is
    written then.
    """
    chosen = tuple(names)
    specs = workspace.specs(chosen)
    planned = plan_batches(workspace, specs, base=base)
    if not check:
        write_batches(workspace, planned)
    # Of a sweep that nobody named, older code is no news.
    return with_code_warnings(workspace, specs, planned, includes_listed=bool(chosen))


def update(workspace: Workspace, name: str, *, base: str | None = None) -> Generated:
    """Write a batch that requests every trial of the spec with the current program.

    Nothing is written if the current program is the locked one. Raises as generate does.
    """
    planned = plan_batches(workspace, workspace.specs([name]), base=base, update=True)
    write_batches(workspace, planned)
    return planned[0]


def push_batches(workspace: Workspace, names: Iterable[str] = ()) -> tuple[tuple[Generated, ...], str | None]:
    """Commit the missing batches to the branch that controllers follow; return them and the commit.

    Raises UsageError if the settings leave generating to authors, SpecError, RepositoryError if the server
    refuses, ContentionError.
    """
    _require_on_merge(workspace)
    chosen = tuple(names)

    def make(commit: str) -> tuple[Change | None, tuple[Generated, ...]]:
        with _checked_out(workspace.repository, commit) as folder:
            return _batch_commit(Workspace.find(folder), chosen, commit)

    target = Target(workspace.repository, workspace.settings.remote, workspace.settings.branch)
    commit, generated = target.commit(make)
    return generated or (), commit


def _batch_commit(
    workspace: Workspace, names: tuple[str, ...], commit: str
) -> tuple[Change | None, tuple[Generated, ...]]:
    """Return the change that adds the missing batches to a commit that is checked out, and these batches."""
    _require_on_merge(workspace)
    planned = plan_batches(workspace, workspace.specs(names), base=commit)
    new = tuple(generated for generated in planned if generated.batch)
    writes = {
        path: content for generated in new for path, content in added_files(workspace, generated).items()
    }
    existing = sorted(writes.keys() & workspace.repository.files(commit).keys())
    assert not existing, f"a new batch adds only new files, but {existing[0]} exists"
    return (Change(batch_message(new), writes) if new else None), new


def _require_on_merge(workspace: Workspace) -> None:
    if workspace.settings.generate is not GenerateMode.ON_MERGE:
        raise UsageError(
            f"{SETTINGS_FILE} does not contain `generate: on-merge`",
            hint="run `sweep generate`, and commit what it writes in the pull request",
        )


def batch_message(new: Iterable[Generated]) -> str:
    """Return the message of the commit that adds batches."""
    counts = {generated.sweep.name: generated.batch.lock.trials for generated in new if generated.batch}
    body = "".join(f"Batch: {generated.batch.name}\n" for generated in new if generated.batch)
    return f"generate({', '.join(counts)}): {sum(counts.values())} trials\n\n{body}"


@contextmanager
def _checked_out(repository: Repository, commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder, and remove the folder afterwards."""
    with tempfile.TemporaryDirectory(prefix="sweep-generate-") as scratch:
        folder = Path(scratch) / "tree"
        filters = without_repository_filters(repository)
        repository.run(*filters, "worktree", "add", "--quiet", "--detach", str(folder), commit)
        try:
            yield folder
        finally:
            repository.run("worktree", "remove", "--force", str(folder))
