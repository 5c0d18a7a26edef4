"""Which batches have ended and which are gone, as the cluster that runs them says."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from generator.commands import recorded
from generator.commands.collect import Collected, Target, collect
from generator.engine.cluster import observed
from generator.engine.cluster.kubectl import Kubectl
from generator.engine.cluster.observed import Held
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.structs.sweep import Shape


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

    ended: frozenset[str]
    alive: AllBut


def look(
    kubectl: Kubectl, namespace: str, active: Iterable[StoredBatch], cancelled: Iterable[StoredBatch] = ()
) -> Seen:
    """Say which active batches have ended, and of which cancelled ones neither object nor pod is left.

    Ended is a batch all of whose objects are there and say so: one that is applied by halves is not.
    Raises ClusterError.
    """
    running, doomed = list(active), list(cancelled)
    if not running and not doomed:
        return Seen(frozenset(), AllBut(frozenset()))
    held = observed.held(kubectl, namespace, {batch.lock.shape for batch in (*running, *doomed)})

    def of(batch: StoredBatch) -> Held:
        return held.get((batch.name, observed.resource(batch.lock.shape)), Held())

    ended = frozenset(batch.name for batch in running if of(batch).is_over(_wanted(batch)))
    gone = frozenset(
        batch.name
        for batch in doomed
        if not of(batch).objects and not observed.has_pods(kubectl, namespace, batch.name)
    )
    return Seen(ended, AllBut(gone))


def collect_from_cluster(
    target: Target, results: Path, kubectl: Kubectl, namespace: str
) -> tuple[Collected, ...]:
    """Record what has ended in the cluster, from its results volume. Raises ClusterError and as `collect`."""
    repository, tip = target.repository, target.tip()
    stored = batches.in_commit(repository, tip)
    active = [batch for batch in stored if batch.is_active]
    # Looked at before the volume is read: what ends in between is recorded next time, none too early.
    seen = look(kubectl, namespace, active, recorded.pending(repository, tip, stored))
    return collect(target, results, seen.ended, alive=seen.alive)


def _wanted(batch: StoredBatch) -> int:
    return 1 if batch.lock.shape is Shape.INDEXED else batch.lock.trials
