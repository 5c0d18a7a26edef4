"""`sweep generate` and `sweep update`: write the next batch of each sweep; `--push` commits it.

Read this first, then `generation/next_batch.py`: spec -> sweep -> trials -> overlay -> work tree.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from sweepledger.commands.generation.next_batch import (
    Generated,
    added_files,
    plan_batches,
    stored_batches,
    with_code_warnings,
    write_batches,
)
from sweepledger.commands.repository import at_commit
from sweepledger.commands.repository.settled_specs import settled_specs
from sweepledger.commands.repository.workspace import SETTINGS_FILE, SPECS, Target, Workspace
from sweepledger.errors import UsageError
from sweepledger.repo.git import Change
from sweepledger.repo.state import state_folder
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


def generate_changed(
    workspace: Workspace, *, check: bool = False, base: str | None = None
) -> tuple[tuple[Generated, ...], frozenset[Path]]:
    """Write the next batch of each sweep that may lack one; return these sweeps, and the specs of all others.

    The others are known without reading them: their newest batch was made from the spec as it is. Raises as
    `generate` does.
    """
    state_folder(workspace.repository)  # as when specs are read: a repository with planted state is refused
    stored = stored_batches(workspace, base, known_to_git=True)
    entries = workspace.repository.files(stored.commit, SPECS, SETTINGS_FILE)
    paths = workspace.spec_paths()
    settled = settled_specs(workspace, entries, stored.merged, stored.added, paths)
    specs = workspace.read(path for path in paths if path not in settled)
    # Who edits a batch of another sweep should know it while the batch runs; its archive is for `sweep check`.
    names = {path.stem for path in settled}
    compared = tuple(batch for batch in stored.present if batch.is_active or batch.sweep not in names)
    planned = plan_batches(workspace, specs, base=base, stored=replace(stored, present=compared))
    if not check:
        write_batches(workspace, planned)
    return with_code_warnings(workspace, specs, planned), settled


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
        with at_commit.checked_out(workspace.repository, commit) as folder:
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
