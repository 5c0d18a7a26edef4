"""Builds the files of a sweep's next batch: number, workload type, parent folders, overlay, Flux file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from sweepledger import storage
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import RepositoryError, UnreadableError, UsageError
from sweepledger.render.base_files import Bases
from sweepledger.render.overlay import Overlay, overlay
from sweepledger.render.platform import flux
from sweepledger.repo import batches, files
from sweepledger.repo.batches import ACTIVE, StoredBatch
from sweepledger.structs.batch import Batch
from sweepledger.structs.early_stopping import StopRule
from sweepledger.structs.names import MAX_BATCH_NUMBER
from sweepledger.structs.program import Program
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import MAX_API_TRIALS, Controller, Settings
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial


def parent_folders(parents: Mapping[int, str], older: Iterable[StoredBatch]) -> dict[int, str]:
    """Return for each row the folder of its parent trial: the one of its last batch.

    Raises RepositoryError if no older batch lists a parent.
    """
    folders = _trial_folders(frozenset(parents.values()), older) if parents else {}
    unknown = sorted(set(parents.values()) - folders.keys())
    if unknown:
        raise RepositoryError(
            f"no batch lists {', '.join(unknown)}, whose checkpoints a trial would continue from"
        )
    return {row: folders[trial] for row, trial in parents.items()}


def parent_folders_of(batch: StoredBatch, stored: Iterable[StoredBatch]) -> dict[int, str]:
    """Return the parent folders of a stored batch, as far as they are known."""
    try:
        lock = batch.lock
        if not lock.parents:
            return {}
        older = [
            candidate
            for candidate in batches.of_sweep(stored, batch.sweep)
            if candidate.lock.number < lock.number
        ]
        folders = _trial_folders(frozenset(lock.parents.values()), older)
    except UnreadableError:
        return {}
    return {row: folders[trial] for row, trial in lock.parents.items() if trial in folders}


def _trial_folders(trials: frozenset[str], older: Iterable[StoredBatch]) -> dict[str, str]:
    ordered = sorted(older, key=lambda batch: batch.lock.number)
    batches.prefetch(ordered)
    return {
        row.trial: f"{batch.name}/{index}"
        for batch in ordered
        for index, row in enumerate(batch.rows)
        if row.trial in trials
    }


def flux_files(settings: Settings, batch: str) -> dict[str, bytes]:
    """Return the files that make the controller run an active batch, by their path in the repository."""
    if settings.controller is not Controller.FLUX:
        return {}
    return {flux.batch_file(batch): flux.batch_kustomization(batch, settings)}


def has_flux_files(workspace: Workspace, batch: str) -> bool:
    """Return whether the Flux files of a batch in the work tree are up to date."""
    return all(
        (workspace.root / path).is_file() and (workspace.root / path).read_bytes() == content
        for path, content in flux_files(workspace.settings, batch).items()
    )


def write_flux_files(workspace: Workspace, batch: str) -> None:
    """Write a batch's Flux files. Raises StorageError."""
    for path, content in flux_files(workspace.settings, batch).items():
        files.refuse_links(workspace.root, path)
        storage.write_file(workspace.root / path, content)


def remove_flux_files(root: Path, batch: str) -> None:
    """Remove a batch's Flux files, under any controller. Raises StorageError."""
    path = flux.batch_file(batch)
    files.refuse_links(root, path)
    storage.remove_file(root / path)


READABLE_JOBS = 20
"""Up to this number of trials, single Jobs are easy to review, if all of them may run at once."""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """The trials to add as a batch, and how they run."""

    sweep: Sweep
    program: Program
    trials: tuple[Trial, ...]
    round: int | None = None
    engine: str | None = None
    parents: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """The parent trial's id, by row."""
    stop: tuple[StopRule, ...] = ()
    """The early-stopping rules."""


def build_overlay(
    request: BatchRequest, merged: Sequence[StoredBatch], bases: Bases, settings: Settings
) -> Overlay:
    """Render the batch that follows the merged ones of a sweep.

    Raises UsageError if the sweep has the largest number of batches, RepositoryError if no batch lists a
    parent, or if the batch has more trials than its store of results bears.
    """
    sweep = request.sweep
    if settings.results.store.holds_pods and len(request.trials) > MAX_API_TRIALS:
        raise RepositoryError(
            f"the next batch of {sweep.name} must have at most {MAX_API_TRIALS} trials with results.store: "
            f"{settings.results.store}, got {len(request.trials)}",
            hint="lower run_cap or ask for fewer values, and for the rest once these are merged; "
            "or choose store: volume in sweepledger.yaml",
        )
    last = batches.newest(merged)
    if last and last.lock.number >= MAX_BATCH_NUMBER:
        raise UsageError(
            f"{sweep.name} has had {MAX_BATCH_NUMBER} batches", hint="start a sweep with another name"
        )
    batch = Batch(
        sweep=sweep,
        number=last.lock.number + 1 if last else 1,
        parent=last.name if last else None,
        program=request.program,
        trials=request.trials,
        shape=shape_of(sweep, _largest_round(request), queued=is_queued(settings, sweep)),
        round=request.round,
        engine=request.engine,
        parents=request.parents,
        parent_folders=parent_folders(request.parents, merged),
        stop=request.stop,
    )
    return overlay(batch, bases, settings)


def batch_files(batch: Overlay, settings: Settings) -> dict[str, bytes]:
    """Return the files that add a batch, by path: its overlay and its Flux file."""
    overlaid = {f"{ACTIVE}/{batch.name}/{path}": content for path, content in batch.tree}
    return {**overlaid, **flux_files(settings, batch.name)}


def _largest_round(request: BatchRequest) -> int:
    """Count the trials of a sweep's largest round: all its rounds have one shape, also a short last one."""
    rounds, trials = request.sweep.rounds, len(request.trials)
    return trials if rounds is None else max(trials, rounds.size * request.sweep.replicates)


def shape_of(sweep: Sweep, trials: int, *, queued: bool = False) -> Shape:
    """Choose the workload type unless the spec does; a queue holds Jobs back itself."""
    if sweep.run.shape is not None:
        return sweep.run.shape
    if sweep.search is not None and sweep.search.method.has_parents:
        return Shape.JOBS  # each trial mounts a different folder
    if sweep.run.max_failed is not None:  # only an Indexed Job counts the failures of all its trials
        return Shape.INDEXED
    at_once = trials if queued else sweep.run.parallelism
    return Shape.JOBS if trials <= min(READABLE_JOBS, at_once) else Shape.INDEXED


def is_queued(settings: Settings, sweep: Sweep) -> bool:
    """Return whether the sweep's pool is a queue."""
    pool = settings.pool(sweep.run.pool)
    return pool is not None and pool.queue is not None
