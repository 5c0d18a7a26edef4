"""Which batches have ended, which are gone and which are stuck, as the cluster that runs them says."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from generator.commands import recorded
from generator.commands.attesting import Waiting, attest
from generator.commands.collect import Collected, Target, UnrecordedError, collect
from generator.commands.gathered import Gathered
from generator.commands.going_on import go_on
from generator.commands.one_writer import one_writer
from generator.commands.onward import Pushed
from generator.commands.progress import show_progress
from generator.commands.searching import Blocked
from generator.commands.stalled import Stalled, stalled, wanted
from generator.engine.cluster import observed, pods
from generator.engine.cluster.kubectl import Kubectl
from generator.engine.cluster.observed import Held
from generator.errors import RepositoryError
from generator.repo import batches
from generator.repo.batches import StoredBatch


@dataclass(frozen=True)
class AllBut:
    """Every batch except those that were seen to be gone: of one that came meanwhile nothing is known."""

    gone: frozenset[str]

    def __contains__(self, name: object) -> bool:
        """Tell whether a batch must be taken to be alive."""
        return name not in self.gone


@dataclass(frozen=True)
class Seen:
    """What a look at the cluster says of batches."""

    active: tuple[StoredBatch, ...]
    held: Mapping[str, Held]
    """Of the active ones."""
    alive: AllBut

    @property
    def ended(self) -> frozenset[str]:
        """Name those all of whose objects are there and have ended: one that is applied by halves has not."""
        return frozenset(one.name for one in self.active if self.held[one.name].is_over(wanted(one)))


@dataclass(frozen=True)
class Found:
    """What came of a look at a cluster."""

    collected: tuple[Collected, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    stalled: tuple[Stalled, ...] = ()
    failures: tuple[RepositoryError, ...] = ()
    """Why something that has ended is not recorded."""
    asked: tuple[Pushed | Blocked, ...] = ()
    """Rounds of searches that were asked for by commits of their own, and why others could not be."""
    remarks: tuple[str, ...] = field(default=(), compare=False)
    """What a person should know of how it was found."""


def look(
    kubectl: Kubectl, namespace: str, active: Iterable[StoredBatch], cancelled: Iterable[StoredBatch] = ()
) -> Seen:
    """Say what there is of active batches, and of which cancelled ones neither object nor pod is left.

    Those whose lock cannot be read are left out. Raises ClusterError.
    """
    running, doomed = batches.legible(active), batches.legible(cancelled)
    shapes = {batch.lock.shape for batch in (*running, *doomed)}
    held = observed.held(kubectl, namespace, shapes)

    def of(batch: StoredBatch) -> Held:
        return held.get((batch.name, observed.resource(batch.lock.shape)), Held())

    gone = frozenset(
        batch.name
        for batch in doomed
        if not of(batch).runners and not pods.any_of(kubectl, namespace, batch.name)
    )
    return Seen(running, {batch.name: of(batch) for batch in running}, AllBut(gone))


@dataclass
class Witness:
    """Knows of each batch what objects and pods say."""

    kubectl: Kubectl
    namespace: str
    seen: Seen
    now: float
    waiting: list[Waiting] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    """Batches whose end is known."""

    def complete(self, found: Gathered) -> Gathered | None:
        """Add what pods know; None where a batch has not ended, or not all of it can be read yet."""
        name = found.batch.name
        held = self.seen.held.get(name)
        if held is None or (held.is_running and not found.is_final):
            return None  # the first was merged after the look
        if held.runners:
            told = attest(self.kubectl, self.namespace, found, held, now=self.now)
            if isinstance(told, Waiting):
                self.settled.add(name)
                self.waiting.append(told)
                return None
            found = told
        if name not in self.seen.ended and not found.is_settled(held.over(found.batch.lock.trials)):
            return None
        self.settled.add(name)
        return found


def collect_from_cluster(
    target: Target,
    results: Path,
    kubectl: Kubectl,
    namespace: str,
    *,
    clock: Callable[[], float] = time.time,
) -> Found:
    """Record what has ended in the cluster, from its results volume, and nobody else meanwhile.

    Raises ClusterError, and as `record` and `one_writer` do.
    """
    with one_writer(kubectl, namespace, target) as remarks:
        found = _collect(target, results, kubectl, namespace, clock)
    return replace(found, remarks=remarks)


def _collect(
    target: Target, results: Path, kubectl: Kubectl, namespace: str, clock: Callable[[], float]
) -> Found:
    repository, tip = target.repository, target.tip()
    stored = batches.in_commit(repository, tip)
    active = [batch for batch in stored if batch.is_active]
    # Looked at before the volume is read: what ends in between is recorded next time, none too early.
    seen = look(kubectl, namespace, active, recorded.pending(repository, tip, stored))
    found = record(target, results, Witness(kubectl, namespace, seen, clock()), tip=tip)
    # Last: what has ended comes first, and what goes wrong here is told beside it.
    return replace(
        found,
        asked=tuple(go_on(target)),
        failures=(*found.failures, *show_progress(target, results, now=clock())),
    )


def record(target: Target, results: Path, witness: Witness, *, tip: str | None) -> Found:
    """Record what a witness knows the end of; tell of the rest what keeps it.

    Raises RepositoryError, StorageError.
    """
    seen = witness.seen
    failures: tuple[RepositoryError, ...] = ()
    try:
        done = collect(target, results, seen.ended, alive=seen.alive, complete=witness.complete)
    except UnrecordedError as error:
        done, failures = error.done, error.failures
    open_ones = [(one, seen.held[one.name]) for one in seen.active if one.name not in witness.settled]
    stuck = stalled(target.repository, tip, open_ones, results=results, now=witness.now)
    return Found(done, tuple(witness.waiting), stuck, failures)
