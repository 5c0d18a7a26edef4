"""The API server as store of results: records are read from pods, which are released once git has them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sweepledger.commands.collection.attempts import BatchAttempts, TrialReader, with_late_records
from sweepledger.commands.collection.cluster_evidence import (
    LAG_SECONDS,
    PendingRecords,
    PodAccount,
    expected_objects,
    expected_records,
    observed_by_jobs,
)
from sweepledger.commands.repository import batch_records
from sweepledger.commands.repository.workspace import Target
from sweepledger.engine.cluster import api_objects, pods
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.cluster.pods import TrialPod
from sweepledger.engine.cluster.workloads import BatchWorkloads
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.results.paths import results_folder
from sweepledger.structs.kubernetes import BATCH_LABEL


@dataclass
class PodStore:
    """The pods of batches whose records have no other place."""

    kubectl: Kubectl
    namespace: str
    now: float
    alive: dict[str, int] = field(default_factory=dict)
    """How many pods have not ended, by batch that was read."""
    _attempts: dict[str, BatchAttempts] = field(default_factory=dict)
    _held: dict[str, list[str]] = field(default_factory=dict)
    """Names of the ended pods of each batch that was read, as far as they are held."""

    def has(self, batch: StoredBatch) -> bool:
        """Return whether the records of a batch are in pods. Raises UnreadableError."""
        return not batch.lock.store.keeps_files

    def read(self, batch: StoredBatch) -> BatchAttempts:
        """Return the attempts of all trials that have ended. Raises ClusterError, UnreadableError."""
        name = batch.vetted().name
        account, self._held[name] = PodAccount(expected_records(batch)), []
        account.add_pods(self._trial_pods(name), self.now)
        files = account.reported()
        reader = TrialReader(batch, lambda index: files.get(index, ()), by_engine=False)
        records, passed_over = reader.read(range(len(batch.rows)))
        attempts = BatchAttempts(
            batch,
            (*map(account.explained, records), *account.substitutes()),
            passed_over,
            account.silent_seconds,
        )
        self.alive[name], self._attempts[name] = account.alive, attempts
        return attempts

    def _trial_pods(self, batch: str) -> Iterator[TrialPod]:
        for manifest in pods.batch_manifests(self.kubectl, self.namespace, batch):
            if pods.has_ended(manifest) and pods.is_held(manifest):
                self._held[batch].append(api_objects.text_at(manifest, "metadata", "name"))
            pod = pods.parse_pod(manifest)
            if pod is not None:
                yield pod

    def complete(self, attempts: BatchAttempts, objects: BatchWorkloads) -> BatchAttempts | PendingRecords:
        """Add the times of the batch's objects, or return for what it waits.

        What is in the status of a pod is there as soon as the pod has ended: only pods that run are waited for.
        """
        name = attempts.batch.name
        until = (objects.finished or 0.0) + LAG_SECONDS
        if self.alive[name] and not objects.is_running and self.now < until:
            return PendingRecords(name, 0, self.alive[name], until)
        return replace(attempts, records=tuple(observed_by_jobs(attempts.records, objects)))

    def without_objects(
        self, active: Iterable[StoredBatch], workloads: Mapping[str, BatchWorkloads]
    ) -> set[str]:
        """Return the batches that have lost objects, but whose pods may say how every trial ended."""
        return {
            batch.name
            for batch in active
            if self.has(batch)
            and not workloads[batch.name].is_running
            and len(workloads[batch.name].workloads) < expected_objects(batch)
        }

    def late(self, stored: Iterable[StoredBatch], recorded: Iterable[str]) -> Iterator[BatchAttempts]:
        """Yield the attempts of recorded batches that still have pods. Raises ClusterError."""
        known = {batch.name: batch for batch in stored}
        active = [name for name, batch in known.items() if batch.is_active]
        held = pods.held_pods(self.kubectl, self.namespace, apart_from=active)
        names = {api_objects.text_at(manifest, "metadata", "labels", BATCH_LABEL) for manifest in held}
        # Only the locks of these are read: an archive has thousands.
        late = batches.readable(known[name] for name in sorted(names & {*recorded} & known.keys()))
        yield from (self.read(batch) for batch in late if self.has(batch))

    def release(self, target: Target) -> int:
        """Release the ended pods that were read if the branch has all that they say; return their number.

        Raises ClusterError, RepositoryError.
        """
        held = {name: names for name, names in self._held.items() if names}
        if not held:
            return 0
        repository, tip = target.repository, target.tip()
        stored = batches.in_commit(repository, tip)
        unrecorded = {batch.name for batch in batch_records.unrecorded_batches(repository, tip, stored)}
        released: list[str] = []
        for batch in stored:
            if batch.name in held and not batch.is_active and batch.name not in unrecorded:
                files = repository.read(tip, results_folder(batch.sweep))
                recorded = batch_records.batch_results(batch, files)
                if with_late_records(recorded, self._attempts[batch.name].records) is None:
                    released += held[batch.name]
        pods.release(self.kubectl, self.namespace, released)
        return len(released)
