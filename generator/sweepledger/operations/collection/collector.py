"""The collector: it records ended batches, then pushes the rounds that are due.

In a cluster one collector runs at a time, and summaries of running batches follow on branches `progress/<sweep>`,
which are never merged.
"""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from sweepledger.engine.cluster.collector_state import LAST_COMMIT, LEASE_NAME, Lease
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.local.store import batch_conditions, observed_pods
from sweepledger.errors import RepositoryError, StorageError, UsageError
from sweepledger.formats.record_json import format_time
from sweepledger.operations.collection import results_commit
from sweepledger.operations.collection.attempts import BatchAttempts
from sweepledger.operations.collection.cluster_evidence import (
    AllExcept,
    ClusterBatches,
    PendingRecords,
    PodStore,
    StalledBatch,
    find_cluster_batches,
    stalled_batches,
)
from sweepledger.operations.collection.record_store import (
    ReaderPodOptions,
    RecordStore,
    RecordStores,
    on_volume,
)
from sweepledger.operations.repository import batch_records
from sweepledger.operations.repository.at_commit import SpecAtCommit
from sweepledger.operations.repository.workspace import Target, Workspace
from sweepledger.operations.rounds.next_round import RoundBlocked
from sweepledger.operations.rounds.round_commit import PushedBatch, push_due, push_repeats
from sweepledger.problems import Problem
from sweepledger.repo import batches, git
from sweepledger.results.tree import changed_files
from sweepledger.structs.names import results_folder
from sweepledger.structs.platform import Names
from sweepledger.structs.record import Status


@contextmanager
def collector_lease(kubectl: Kubectl, namespace: str, target: Target) -> Iterator[tuple[str, ...]]:
    """Hold the collector's Lease, if there is one, for a block; yield remarks for the user.

    The block also runs without it: git refuses the slower of two writers, so results are correct, and only the
    record of the last commit is missing. Raises RepositoryError if the branch lost a commit seen before.
    """
    if target.remote is None:
        yield ()
        return
    lease = Lease(kubectl, Names(namespace).collector)
    refusal = lease.acquire()
    last, repository, branch = lease.last_commit, target.repository, target.branch
    try:
        tip = target.tip()
        if last and tip and not git.remote_contains(repository, target.remote, branch, tip, last):
            raise RepositoryError(
                f"{branch} is at {tip[:12]}, which does not follow {last[:12]}, seen there before: its "
                "history was cut or rewritten, and nothing is recorded on top",
                hint=f"restore it; or, if it is meant so: `kubectl --namespace {lease.namespace} annotate lease "
                f"{LEASE_NAME} {LAST_COMMIT}-`",
            )
        last = tip
        yield () if refusal is None else (f"without its Lease, as {refusal}",)
        last = target.tip()
    finally:
        lease.release(last)


@dataclass(frozen=True)
class Collection:
    """The result of one collection."""

    collected: tuple[results_commit.ResultsCommit, ...] = ()
    pending: tuple[PendingRecords, ...] = ()
    stalled: tuple[StalledBatch, ...] = ()
    failures: tuple[RepositoryError, ...] = ()
    """Why ended batches could not be recorded."""
    rounds: tuple[PushedBatch | RoundBlocked, ...] = ()
    """Rounds, and trials to repeat, that were pushed as separate commits, and reasons why others could not be."""
    remarks: tuple[str, ...] = field(default=(), compare=False)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return a warning for each results commit that ignores files of trials."""
        return tuple(problem for commit in self.collected for problem in commit.problems)

    @classmethod
    def joined(cls, collections: Iterable["Collection"]) -> "Collection":
        """Return everything that several collections recorded, and what the last collection left pending."""
        every = tuple(collections)
        rounds: list[PushedBatch | RoundBlocked] = []
        for round_ in chain.from_iterable(one.rounds for one in every):
            if round_ not in rounds:  # overlays have no hash
                rounds.append(round_)
        return replace(
            every[-1],
            collected=tuple(commit for one in every for commit in one.collected),
            rounds=tuple(rounds),
            remarks=tuple(dict.fromkeys(remark for one in every for remark in one.remarks)),
        )


def record_from_cluster(target: Target, seen: ClusterBatches, pods: PodStore, tip: str | None) -> Collection:
    """Record the batches that have ended in a cluster, release their pods, and say why other batches are unrecorded.

    Raises RepositoryError, StorageError, ClusterError.
    """
    pending: list[PendingRecords] = []
    settled: set[str] = set()
    """Names of batches whose end is known."""

    def complete(attempts: BatchAttempts) -> BatchAttempts | None:
        """Add the evidence of pods; None if a batch has not ended, or its records cannot all be read yet."""
        name, lock = attempts.batch.name, attempts.batch.lock
        workloads = seen.workloads.get(name)
        if workloads is None or (workloads.is_running and not attempts.is_final):
            return None  # the first was merged after the cluster was observed
        completed = pods.complete(attempts, workloads)
        if isinstance(completed, PendingRecords):
            settled.add(name)
            pending.append(completed)
            return None
        is_ended = name in seen.ended
        if not is_ended and not completed.is_settled(workloads.ended(lock.trials, lock.run.pack)):
            return None
        settled.add(name)
        return completed

    failures: tuple[RepositoryError, ...] = ()
    try:
        commits = results_commit.commit_results(
            target,
            pods.stores,
            seen.ended | seen.without_objects,
            alive=seen.alive,
            complete=complete,
            pods=pods,
            running={name for name, objects in seen.workloads.items() if objects.is_running},
        )
    except results_commit.UnrecordedError as error:
        commits, failures = error.done, error.failures
    unfinished = ((batch, seen.workloads[batch.name]) for batch in seen.active if batch.name not in settled)
    try:
        stalled = tuple(stalled_batches(target.repository, tip, unfinished, stores=pods.stores, now=pods.now))
    except StorageError as error:
        if pods.stores.of_new.is_common:
            raise
        stalled = ()  # what was recorded is said all the same, and its pods are released
        failures += (RepositoryError(f"stalled batches are not looked for: {error}", hint=error.hint),)
    pods.release(target)
    return Collection(commits, tuple(pending), stalled, failures, remarks=tuple(pods.remarks))


def collect_from_state(
    target: Target, results: Path, state: Path, *, over: AbstractSet[str] = frozenset()
) -> Collection:
    """Record the batches that have ended in the local engine, and those in `over`; then push due rounds.

    `over` names batches that something else has run, such as Slurm: their trials without a record are missing.
    Raises UsageError if one is not active, RepositoryError, StorageError.
    """
    if over:
        active = {batch.name for batch in batches.in_commit(target.repository, target.tip(), batches.ACTIVE)}
        if unknown := sorted(over - active):
            hint = f"active batches: {', '.join(sorted(active)) or 'none'}"
            raise UsageError(f"no active batch {unknown[0]!r} is committed", hint=hint)
    known = batch_conditions(state) if state.is_dir() else None
    ended = {batch for batch, condition in (known or {}).items() if condition} | over
    failures: tuple[RepositoryError, ...] = ()

    def complete(attempts: BatchAttempts) -> BatchAttempts | None:
        """Add the times of the engine's own processes."""
        name = attempts.batch.name
        if name not in ended and not attempts.is_settled():
            return None
        times = {
            key: (format_time(pod.started), format_time(pod.finished))
            for key, pod in observed_pods(state, name).items()
        }
        observed = (replace(one, observed=times.get((one.index, one.uid))) for one in attempts.records)
        return replace(attempts, records=tuple(observed))

    try:
        commits = results_commit.commit_results(
            target, on_volume(results), ended, alive=known, complete=complete, running=AllExcept(frozenset())
        )
    except results_commit.UnrecordedError as error:
        commits, failures = error.done, error.failures
    return Collection(commits, rounds=tuple(push_due(target)), failures=failures)


def collect_from_cluster(
    target: Target,
    stores: RecordStores,
    kubectl: Kubectl,
    namespace: str,
    *,
    clock: Callable[[], float] = time.time,
) -> Collection:
    """Record the batches that have ended in the cluster from their stores, while holding the Lease.

    Raises ClusterError, and as `commit_results` and `collector_lease` do.
    """
    with collector_lease(kubectl, namespace, target) as remarks:
        repository, tip = target.repository, target.tip()
        stored, is_own = batches.in_commit(repository, tip), results_commit.recorded_by(target, tip)
        active = [batch for batch in stored if batch.is_active and is_own(batch)]
        cancelled = filter(is_own, batch_records.unrecorded_batches(repository, tip, stored))
        # Observed before the volume is read: a batch that ends in between is recorded next time, never too early.
        cluster = find_cluster_batches(kubectl, namespace, active, cancelled)
        store = PodStore(kubectl, namespace, clock(), stores)
        collection = record_from_cluster(target, cluster, store, tip)
        # Last: ended batches are recorded first, and errors here are reported in addition.
        return replace(
            collection,
            rounds=tuple(push_due(target)),
            remarks=(*remarks, *collection.remarks),
            failures=(*collection.failures, *update_progress_branches(target, stores, now=clock())),
        )


POLL_SECONDS = 5
"""Seconds between two looks at the cluster while batches are active."""


def watch_cluster(
    target: Target,
    open_stores: Callable[[], RecordStores],
    kubectl: Kubectl,
    namespace: str,
    seconds: float,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Collection]:
    """Collect now and whenever a batch ends, until the time is over or no batch is active.

    A search then does not wait for the next scheduled run. The stores are opened for each collection, because a bucket
    lists a batch once. Raises as `collect_from_cluster` does.
    """
    until, tried = clock() + seconds, frozenset[str]()
    while True:
        yield collect_from_cluster(target, open_stores(), kubectl, namespace, clock=clock)
        while True:
            if clock() + POLL_SECONDS > until:
                return
            tip = target.tip()
            is_own = results_commit.recorded_by(target, tip)
            active = [*filter(is_own, batches.in_commit(target.repository, tip, batches.ACTIVE))]
            if not active:
                return
            ended = find_cluster_batches(kubectl, namespace, active).ended
            if ended - tried:
                break
            sleep(POLL_SECONDS)
        # One that is not recorded by then, such as one whose pods are awaited, is left to the next scheduled run.
        tried |= ended


def collect_by_pod(
    workspace: Workspace, target: Target, kubectl: Kubectl, *, image: str | None, patience: float
) -> Collection:
    """Read the records of the active batches through a helper pod, and record the batches that have ended.

    Raises ClusterError, RepositoryError if no image is known, UsageError, and as collecting does.
    """
    settings = workspace.settings
    tip = workspace.base_commit(None)
    is_own = results_commit.recorded_by(target, tip)
    active = [*filter(is_own, batches.in_commit(workspace.repository, tip, batches.ACTIVE))]
    if not active:
        return Collection(rounds=tuple(push_repeats(target)))
    copied = [batch.name for batch in batches.readable(active) if not batch.lock.store.facts.holds_pods]
    with tempfile.TemporaryDirectory(prefix="sweep-results-") as scratch:
        # Observed before the volume is read: a batch that ends in between is recorded next time, never too early.
        cluster = find_cluster_batches(kubectl, settings.trials.namespace, active)
        if copied:
            with ReaderPodOptions(workspace, kubectl, image, patience).running() as reader:
                for name in copied:
                    reader.copy(name, Path(scratch))
        stores = RecordStores.of_settings(settings.results, workspace.repository, Path(scratch))
        store = PodStore(kubectl, settings.trials.namespace, time.time(), stores)
        collection = record_from_cluster(target, cluster, store, tip)
        return replace(collection, rounds=tuple(push_repeats(target)))


PROGRESS_PREFIX = "progress"
MINUTE = 60


def branch_name(sweep: str) -> str:
    """Return the branch of a sweep's partial summary."""
    return f"{PROGRESS_PREFIX}/{sweep}"


def update_progress_branches(
    target: Target, stores: RecordStores, *, now: float
) -> Iterator[RepositoryError]:
    """Update the partial summaries that are due, and delete those of sweeps without a running batch.

    Yields why a summary could not be updated; the next run tries again. Raises RepositoryError, StorageError.
    """
    if target.remote is None or target.progress_minutes is None:
        return
    repository, tip = target.repository, target.tip()
    stored, store = batches.in_commit(repository, tip), stores.of_new
    active = [batch for batch in stored if batch.is_active and store.has_begun(batch.name)]
    running = batches.readable(active)
    existing = git.remote_branches(repository, target.remote, PROGRESS_PREFIX)
    sweeps = {batch.sweep for batch in stored if batch.is_active}
    kept = {branch_name(sweep) for sweep in sweeps}
    for sweep in sorted({batch.sweep for batch in running}):
        own = [batch for batch in batches.of_sweep(stored, sweep) if not batch.is_active or batch in running]
        try:
            _update_branch(target, store, sweep, own, existing, tip or "", now)
        except RepositoryError as error:
            yield error
    git.delete_branches(
        repository, target.remote, {name: at for name, at in existing.items() if name not in kept}
    )


def _update_branch(
    target: Target,
    store: RecordStore,
    sweep: str,
    running: Iterable[batches.StoredBatch],
    existing: Mapping[str, str],
    tip: str,
    now: float,
) -> None:
    assert target.remote is not None
    assert target.progress_minutes is not None
    repository, branch = target.repository, branch_name(sweep)
    base = tip
    if branch in existing:
        repository.run("fetch", "--quiet", "--no-tags", target.remote, f"refs/heads/{branch}")
        base = existing[branch]
        last = git.present_since(repository, base, results_folder(sweep))
        if last is not None and last > now - target.progress_minutes * MINUTE:
            return
    files = repository.read(tip, results_folder(sweep))
    listed = [one for one in running if one.is_active or one.records_file() in files]
    newest = batches.newest(listed)
    assert newest is not None
    summary = SpecAtCommit.at(repository, tip, newest.lock.spec.path).summarised(
        BatchAttempts.read(store, batch, by_engine=False).concluded
        if batch.is_active
        else batch_records.batch_results(batch, files)
        for batch in listed
    )
    writes, removes = changed_files(summary)
    missing = summary.counts.get(Status.MISSING, 0)
    message = f"Progress of {sweep}: {missing} trials have left nothing yet\n"
    git.push_proposal(repository, target.remote, branch, base, git.Change(message, writes, removes=removes))
