"""`sweep export` of an active batch to what runs it elsewhere: a Slurm array, a shell script."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from sweepledger.commands.exchange import ExportedSweep, require_new
from sweepledger.commands.local import DesiredState, RefusedBatch
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.engine.local import batch_script
from sweepledger.engine.local.batch_script import PreparedBatch
from sweepledger.engine.local.pods import DesiredBatch
from sweepledger.engine.local.volumes import StateFolders, write_configs
from sweepledger.errors import RepositoryError, SpecError
from sweepledger.exchange.conversion import Loss
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Mirror
from sweepledger.repo.state import create_state
from sweepledger.storage import write_file
from sweepledger.structs.program import LOCAL_IMAGE

SCRIPTS: Mapping[str, Callable[[PreparedBatch], str]] = {
    "slurm": batch_script.slurm_script,
    "shell": batch_script.shell_script,
}
"""Formats of scripts that run a batch."""
DEFAULT_DISRUPTIONS = 5
"""For batches of the first launcher, whose locks have no such number; the default of specs."""


def export_batch(
    workspace: Workspace, format_name: str, name: str, *, batch: str | None = None, output: Path | None = None
) -> ExportedSweep:
    """Convert the committed, active batch of a sweep to a script, and put what it needs into the state folder.

    The script runs the trials that a cluster would run: the same launcher, rows and ids. Raises SpecError if the
    batch needs a cluster, UsageError, RepositoryError, StorageError.
    """
    require_new(workspace.root, output)
    stored = _active_batch(workspace, name, batch)
    prepared = _prepare(workspace, stored)
    text = SCRIPTS[format_name](prepared)
    if output is not None:
        write_file(output, text.encode())
    path = output.as_posix() if output else None
    return ExportedSweep(text, tuple(_losses(stored, prepared)), (), path)


def _active_batch(workspace: Workspace, name: str, batch: str | None) -> StoredBatch:
    committed = batches.in_commit(workspace.repository, workspace.repository.commit("HEAD"))
    active = [stored for stored in batches.of_sweep(committed, name) if stored.is_active]
    chosen = [stored for stored in active if batch in {None, stored.name}]
    if len(chosen) == 1:
        return chosen[0].vetted()
    if chosen:
        listed = ", ".join(stored.name for stored in chosen)
        raise RepositoryError(
            f"{name} has {len(chosen)} active batches: {listed}", hint="choose one by --batch"
        )
    wanted = batch or f"batch of {name}"
    raise RepositoryError(
        f"no active {wanted} is committed",
        hint=f"`sweep generate {name}`, commit what it writes, and export again",
    )


def _prepare(workspace: Workspace, stored: StoredBatch) -> PreparedBatch:
    """Check a batch, and put its code, dataset and tables into the state folder. Raises SpecError."""
    repository = workspace.repository
    commit = repository.commit("HEAD")
    assert commit is not None, "the batch is in a commit"
    state = create_state(repository).resolve()
    mirror = Mirror(state, str(repository.folder), repository.branch() or workspace.settings.branch)
    mirror.borrow(repository)
    desired = DesiredState(repository, mirror, state, work_tree=repository).desired(commit, stored)
    if isinstance(desired, RefusedBatch):
        raise SpecError(desired.problems)
    for job in desired.batch.jobs:
        write_configs(StateFolders(state), desired.batch, job)
    return _relative(desired, stored, state)


def _relative(desired: DesiredBatch, stored: StoredBatch, state: Path) -> PreparedBatch:
    disruptions = stored.lock.max_disruptions
    code = desired.code.resolve()
    return PreparedBatch(
        desired.batch,
        stored.sweep,
        code=PurePosixPath(code.relative_to(state)),
        max_disruptions=DEFAULT_DISRUPTIONS if disruptions is None else disruptions,
        data=None if desired.data is None else PurePosixPath(desired.data.resolve().relative_to(state)),
        python_path=tuple(PurePosixPath(path.resolve().relative_to(code)) for path in desired.python_path),
    )


def _losses(stored: StoredBatch, prepared: PreparedBatch) -> Iterator[Loss]:
    """Yield what a cluster does for a batch and a script does not."""
    lock, job = stored.lock, prepared.job
    if lock.program.image != LOCAL_IMAGE:
        yield Loss(
            f"image: {lock.program.image}",
            "no container is started: trials use the programs on PATH, and their records say process",
        )
    if lock.pool:
        yield Loss(f"pool: {lock.pool}", "nodes, queues and prices are those of the script's own options")
    if job.indexed and job.max_failed is not None and job.max_failed < lock.trials:
        yield Loss(f"max_failed: {job.max_failed}", "failed trials stop no others")
    yield Loss("network and rights", "trials have those of the user who starts the script")
