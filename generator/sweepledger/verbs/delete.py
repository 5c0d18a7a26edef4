"""Delete a sweep by a commit; history keeps it.

The commit removes its spec, its batches and its results, and `git revert` brings them back. Logs and artifacts
that this machine has of its trials stay below `.sweepledger/deleted/`. In a repository with a controller, only the
spec goes: what a team has recorded stays.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from sweepledger import storage
from sweepledger.cli.options import SweepArgument
from sweepledger.cli.response import SHORT_COMMIT, Response
from sweepledger.cli.text.values import count_text
from sweepledger.engine.local.engine import LocalEngine
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.operations.repository import at_commit, batch_records, catalog
from sweepledger.operations.repository.workspace import Target, Workspace
from sweepledger.repo import batches
from sweepledger.repo.git import Change, uncommitted_paths
from sweepledger.repo.state import state_folder
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
    kept: str | None
    """The folder with what this machine has of its trials."""


DELETED = "deleted"
"""Folder of the state with what trials of deleted sweeps have written, by the commit that deleted them."""


def delete(workspace: Workspace, name: SweepArgument) -> Response:
    deleted = delete_sweep(workspace, name)
    commit = deleted.commit[:SHORT_COMMIT]
    trials = count_text(deleted.trials, "trial")
    if deleted.keeps_results:
        place = results_folder(deleted.sweep)
        lines = [f"deleted the spec of {deleted.sweep} in {commit}; {trials} stay in {place}/"]
    else:
        lines = [
            f"deleted {deleted.sweep} with {trials} in {commit}",
            f"`git revert {commit}` brings it back",
        ]
    if deleted.kept is not None:
        lines.append(f"{deleted.kept} has the logs and artifacts of its trials")
    return Response(deleted, tuple(lines))


def delete_sweep(workspace: Workspace, name: str) -> Deleted:
    """Commit the removal of a sweep. Raises UsageError for one that others need, RepositoryError for one that runs."""
    repository, name = workspace.repository, catalog.sweep_name(workspace.root, name)
    keeps_results = workspace.settings.platform.controller is not Controller.NONE
    spec = f"{SPECS}/{name}{SUFFIX}"

    def make(head: str) -> tuple[Change, tuple[int, frozenset[str]]]:
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
        change = Change(f"delete({name}): {count_text(trials, 'trial')}\n\nSweep: {name}\n", removes=removed)
        return change, (trials, frozenset(batch.name for batch in stored))

    state, kept = state_folder(repository), None
    has_run = not keeps_results and any(state.glob(f"results/{name}-*"))
    with LocalEngine(state) if has_run else nullcontext() as engine:
        commit, made = Target(repository).commit(make)
        assert commit is not None
        assert made is not None
        trials, names = made
        if engine is not None:
            kept = _set_aside(engine, state, names, state / DELETED / commit[:SHORT_COMMIT])
    shown = None if kept is None else kept.relative_to(repository.folder).as_posix()
    return Deleted(name, trials, keeps_results, commit, shown)


def _set_aside(engine: LocalEngine, state: Path, names: frozenset[str], place: Path) -> Path | None:
    """Move what trials of batches have written here to a folder, and return it; None if there is nothing.

    A batch that is made again has the same name, and would take what these have measured for its own.
    """
    engine.step([], untouched=engine.conditions.keys() - names)
    folders = (state / volume / name for volume in ("results", "checkpoints") for name in sorted(names))
    written = [folder for folder in folders if folder.is_dir()]
    for folder in written:
        target = place / folder.relative_to(state)
        with storage.storage_errors(folder):
            target.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(target)
    return place if written else None
