"""Builds the files of a sweep's next batch: number, workload type, parent folders, overlay, controller's file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from sweepledger.errors import RepositoryError, UnreadableError, UsageError
from sweepledger.operations.repository.at_commit import settings_or_defaults
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.render.base_files import Bases
from sweepledger.render.overlay import Overlay, overlay
from sweepledger.render.platform import batch_objects
from sweepledger.repo import batches
from sweepledger.repo.base_files import read_bases, read_bases_at
from sweepledger.repo.batches import ACTIVE, StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.structs.batch import Batch
from sweepledger.structs.names import MAX_BATCH_NUMBER
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import (
    FleetSettings,
    GitSettings,
    NetworkSettings,
    PlatformSettings,
    ResultsSettings,
    TrialSettings,
)
from sweepledger.structs.settings.results import MAX_API_TRIALS
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial


def parent_folders_of(batch: StoredBatch, stored: Iterable[StoredBatch]) -> dict[int, str]:
    """Return the known parent folders of a stored batch."""
    try:
        lock = batch.lock
        if not lock.parents or lock.restarts:
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


READABLE_JOBS = 20
"""Up to this number of trials, single Jobs are easy to review, if all of them may run at once."""


def parent_trials(trials: Sequence[Trial], merged: Sequence[StoredBatch]) -> dict[int, str]:
    """Return the parent of each trial that had one when it was first requested, by row."""
    first: Mapping[str, str] = {
        trial.digest: batch.lock.parents[row]
        for batch in reversed(merged)
        for row, trial in enumerate(batch.trials)
        if row in batch.lock.parents
    }
    return {row: first[trial.digest] for row, trial in enumerate(trials) if trial.digest in first}


@dataclass(frozen=True, slots=True)
class RenderInputs:
    """The inputs, besides the batch, from which its overlay is rendered."""

    bases: Bases
    trials: TrialSettings
    network: NetworkSettings
    results: ResultsSettings
    git: GitSettings
    fleet: FleetSettings

    @classmethod
    def of(cls, workspace: Workspace) -> "RenderInputs":
        """Return the inputs from the work tree."""
        settings, bases = workspace.settings, read_bases(workspace.root)
        return cls(bases, settings.trials, settings.network, settings.results, settings.git, settings.fleet)

    @classmethod
    def at(cls, repository: Repository, commit: str) -> "RenderInputs":
        """Return the inputs from a commit."""
        settings, bases = settings_or_defaults(repository, commit), read_bases_at(repository, commit)
        return cls(bases, settings.trials, settings.network, settings.results, settings.git, settings.fleet)


def build_overlay(batch: Batch, merged: Sequence[StoredBatch], inputs: RenderInputs) -> Overlay:
    """Render a batch as the next batch of its sweep: number, shape, folders and cluster are set.

    Raises UsageError if the sweep has the largest number of batches, RepositoryError if no batch lists a
    parent, if the batch has more trials than its store of results bears, or if no cluster can run it.
    """
    sweep, parents = batch.sweep, frozenset(batch.parents.values())
    pods = sweep.run.packed.pods(len(batch.trials))
    if inputs.results.store.facts.holds_pods and pods > MAX_API_TRIALS:
        what = "trials" if sweep.run.pack is None else "packs of trials"
        raise RepositoryError(
            f"the next batch of {sweep.name} must have at most {MAX_API_TRIALS} {what} with results.store: "
            f"{inputs.results.store}, got {pods}",
            hint="lower run_cap or list fewer values, and add the rest once these are merged; "
            "or choose store: volume in sweepledger.yaml",
        )
    folders: Mapping[int, str] = {}
    if parents and not (sweep.search is not None and sweep.search.restarts_trials):
        known = _trial_folders(parents, merged)
        if unknown := sorted(parents - known.keys()):
            raise RepositoryError(
                f"no batch lists {', '.join(unknown)}, whose checkpoints a trial would continue from"
            )
        folders = {row: known[trial] for row, trial in batch.parents.items()}
    last = merged[-1] if merged else None
    if last and last.lock.number >= MAX_BATCH_NUMBER:
        raise UsageError(
            f"{sweep.name} has had {MAX_BATCH_NUMBER} batches", hint="start a sweep with another name"
        )
    largest = len(batch.trials)
    if sweep.rounds is not None:  # all rounds have one shape, also a short last one
        search, size = sweep.search, sweep.rounds.size
        size = size if search is None or search.resource is None else search.largest_round
        largest = max(largest, size * sweep.replicates)
    made = replace(
        batch,
        number=last.lock.number + 1 if last else 1,
        parent=last.name if last else None,
        shape=shape_of(sweep, largest),
        parent_folders=folders,
        cluster=_cluster(batch, last, inputs.fleet),
    )
    return overlay(made, inputs.bases, inputs.trials, inputs.network, inputs.results, inputs.git)


def _cluster(batch: Batch, last: StoredBatch | None, fleet: FleetSettings) -> str | None:
    """Return the cluster of the next batch; None if there is only one cluster. Raises RepositoryError."""
    sweep, former = batch.sweep, last.lock.cluster if last else None
    cluster = fleet.choose_cluster(sweep.name, sweep.run, last=former)
    if fleet.clusters and cluster is None:
        raise RepositoryError(
            f"no cluster can run the next batch of {sweep.name}",
            hint="let run.cluster name one that has the pool and was not given up",
        )
    if batch.parents and cluster != former:
        raise RepositoryError(
            f"the next batch of {sweep.name} continues from checkpoints in {_place(former)}, and would run in "
            f"{_place(cluster)}",
            hint="checkpoints do not move: start a sweep with another name",
        )
    return cluster


def _place(cluster: str | None) -> str:
    return "the only cluster" if cluster is None else f"cluster {cluster}"


def batch_files(batch: Overlay, platform: PlatformSettings, trials: TrialSettings) -> dict[str, bytes]:
    """Return the files that add a batch, by path: its overlay and the file of its controller."""
    overlaid = {f"{ACTIVE}/{batch.name}/{path}": content for path, content in batch.tree}
    own = {batch.name: batch.lock.cluster}
    return {**overlaid, **batch_objects.batch_files(platform.controller, trials.namespace, own)}


def shape_of(sweep: Sweep, trials: int) -> Shape:
    """Choose the workload type unless the spec does: one Job if pods are counted together, for example by a queue."""
    if sweep.run.shape is not None:
        return sweep.run.shape
    if sweep.search is not None and sweep.search.continues_trials:
        return Shape.JOBS  # each trial mounts a different folder
    if sweep.run.pack is not None:
        return Shape.INDEXED
    if sweep.run.max_failed is not None:  # only an Indexed Job counts the failures of all its trials
        return Shape.INDEXED
    if sweep.pool is not None and sweep.pool.min_parallelism is not None:
        return Shape.INDEXED  # a queue admits each object alone
    return Shape.JOBS if trials <= min(READABLE_JOBS, sweep.run.parallelism) else Shape.INDEXED
