"""Delete a sweep by a commit; history keeps it.

The commit removes its spec, its batches and its results, and `git revert` brings them back. In a
repository with a controller, only the spec goes: what a team has recorded stays.
"""

from dataclasses import dataclass

from sweepledger.cli.options import SweepArgument
from sweepledger.cli.response import SHORT_COMMIT, Response
from sweepledger.cli.text.values import count_text
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.operations.repository import at_commit, batch_records, catalog
from sweepledger.operations.repository.workspace import Target, Workspace
from sweepledger.repo import batches
from sweepledger.repo.git import Change, uncommitted_paths
from sweepledger.structs.names import SPECS, SUFFIX, results_folder
from sweepledger.structs.settings import Controller


@dataclass(frozen=True)
class Deleted:
    """A sweep that a commit has deleted."""

    sweep: str
    trials: int
    keeps_results: bool
    """Whether its batches and results stay."""
    commit: str


def delete(workspace: Workspace, name: SweepArgument) -> Response:
    deleted = delete_sweep(workspace, name)
    commit = deleted.commit[:SHORT_COMMIT]
    trials = count_text(deleted.trials, "trial")
    if deleted.keeps_results:
        lines = [f"deleted the spec of {name} in {commit}; {trials} stay in {results_folder(name)}/"]
    else:
        lines = [f"deleted {name} with {trials} in {commit}", f"`git revert {commit}` brings it back"]
    return Response(deleted, tuple(lines))


def delete_sweep(workspace: Workspace, name: str) -> Deleted:
    """Commit the removal of a sweep. Raises UsageError for one that others need, RepositoryError for one that runs."""
    repository = workspace.repository
    keeps_results = workspace.settings.platform.controller is not Controller.NONE
    spec = f"{SPECS}/{name}{SUFFIX}"

    def make(head: str) -> tuple[Change, int]:
        committed = catalog.committed_sweeps(repository, head)
        if name not in committed and (workspace.root / spec).is_file():
            raise RepositoryError(f"{spec} is in no commit", hint=f"`rm {spec}` removes it")
        catalog.choose_sweep(workspace.root, name, committed)
        stored = batches.of_sweep_in_commit(repository, head, name)
        unrecorded = batch_records.unrecorded_batches(repository, head, stored)
        if pending := [batch.name for batch in stored if batch.is_active or batch in unrecorded]:
            raise RepositoryError(
                f"{', '.join(pending)} is not recorded yet",
                hint=f"`sweep run {name}` finishes it, `sweep cancel {name}` ends it; then run this again",
            )
        reader = at_commit.SpecReader(repository, workspace.settings)
        others = (reader.sweep(head, path) for path in repository.files(head, SPECS) if path != spec)
        if needing := [each.name for each in others if each and each.search and name in each.search.start]:
            raise UsageError(
                f"{', '.join(needing)} starts from the trials of {name}",
                hint="delete that sweep first, or its key `start`",
            )
        places = [spec, *(() if keeps_results else (results_folder(name), *(each.folder for each in stored)))]
        if changed := uncommitted_paths(repository, *places):
            raise RepositoryError(
                f"{changed[0]} has changes that are not committed",
                hint="commit or stash them, then run this again",
            )
        trials = sum(batch.lock.trials for batch in batches.readable(stored))
        removed = frozenset(repository.files(head, *places))
        if not removed:
            raise UsageError(f"{spec} is deleted already", hint=f"results stay in {results_folder(name)}/")
        return Change(
            f"delete({name}): {count_text(trials, 'trial')}\n\nSweep: {name}\n", removes=removed
        ), trials

    commit, trials = Target(repository).commit(make)
    assert commit is not None
    return Deleted(name, trials or 0, keeps_results, commit)
