"""The pods that are held for their records: what they say of them, and their release once git has that."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from sweepledger.commands.collection import cluster_evidence
from sweepledger.commands.collection.attempts import BatchAttempts, TrialReader, with_late_records
from sweepledger.commands.collection.record_store import RecordStores
from sweepledger.commands.repository import batch_records
from sweepledger.commands.repository.workspace import Target
from sweepledger.engine.cluster import api_objects, pods
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.cluster.workloads import BatchWorkloads
from sweepledger.repo import batches
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.kubernetes import BATCH_LABEL
from sweepledger.structs.names import results_folder

MOST_NAMED = 10
"""Rows that a remark names."""


@dataclass
class PodStore:
    """The pods of batches that are held for their records."""

    kubectl: Kubectl
    namespace: str
    now: float
    stores: RecordStores
    incomplete: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Trials with a pod that ended before all its files were in the bucket, by batch that was read."""
    alive: dict[str, int] = field(default_factory=dict)
    """How many pods have not ended, by batch that was read."""
    _attempts: dict[str, BatchAttempts] = field(default_factory=dict)
    _held: dict[str, list[str]] = field(default_factory=dict)
    """Names of the ended pods of each batch that was read, as far as they are held."""

    def has(self, batch: batches.StoredBatch) -> bool:
        """Return whether the records of a batch need its pods. Raises UnreadableError."""
        return batch.lock.store.facts.holds_pods

    def read(self, batch: batches.StoredBatch) -> BatchAttempts:
        """Return the attempts of all trials that have ended, as far as pods or a seal confirm what their store has.

        Raises ClusterError, UnreadableError, StorageError.
        """
        name = batch.vetted().name
        self._held[name] = []
        stored = BatchAttempts.read(self.stores.of(batch), batch, by_engine=False)
        account = cluster_evidence.PodAccount(
            cluster_evidence.expected_records(batch),
            stored.confirmed_records,
            stored=stored.unconfirmed_records,
        )
        account.add_pods(self._trial_pods(batch.lock), self.now)
        self.alive[name] = account.alive
        if batch.lock.store.facts.has_sidecar:
            self.incomplete[name] = tuple(sorted(account.incomplete))
        files = account.reported()
        reported, refused = TrialReader(batch, files.__getitem__, by_engine=False).read(sorted(files))
        records = (*stored.confirmed_records, *account.confirmed, *reported)
        ignored = (stored.passed_over, account.doubts(), refused)
        attempts = BatchAttempts(
            batch,
            (*map(account.explained, records), *account.substitutes()),
            {
                index: tuple(reason for reasons in ignored for reason in reasons.get(index, ()))
                for index in sorted({*chain(*ignored)})
            },
            account.silent_seconds,
        )
        self._attempts[name] = attempts
        return attempts

    def _trial_pods(self, batch: BatchLock) -> Iterator[pods.TrialPod]:
        for manifest in pods.batch_manifests(self.kubectl, self.namespace, batch.name):
            if pods.has_ended(manifest) and pods.is_held(manifest):
                self._held[batch.name].append(api_objects.text_at(manifest, "metadata", "name"))
            yield from pods.trial_pods(manifest, batch)

    @property
    def remarks(self) -> Iterator[str]:
        """Yield which trials left files that are not all in the bucket."""
        for name, indexes in sorted(self.incomplete.items()):
            if indexes:
                rows = ", ".join(map(str, indexes[:MOST_NAMED]))
                more = f" and {len(indexes) - MOST_NAMED} more" if len(indexes) > MOST_NAMED else ""
                yield f"{name}: not all files are in the bucket of row {rows}{more}"

    def complete(
        self, attempts: BatchAttempts, objects: BatchWorkloads
    ) -> BatchAttempts | cluster_evidence.PendingRecords:
        """Add the times of the batch's objects, or return for what it waits.

        What is in the status of a pod is there as soon as the pod has ended: only pods that run are waited for.
        """
        name = attempts.batch.name
        until = (objects.finished or 0.0) + cluster_evidence.LAG_SECONDS
        if self.alive[name] and not objects.is_running and self.now < until:
            return cluster_evidence.PendingRecords(name, 0, self.alive[name], until)
        return replace(attempts, records=tuple(cluster_evidence.observed_by_jobs(attempts.records, objects)))

    def without_objects(
        self, active: Iterable[batches.StoredBatch], workloads: Mapping[str, BatchWorkloads]
    ) -> set[str]:
        """Return the batches that have lost objects, but whose pods may say how every trial ended."""
        return {
            batch.name
            for batch in active
            if self.has(batch)
            and not workloads[batch.name].is_running
            and len(workloads[batch.name].workloads) < cluster_evidence.expected_objects(batch)
        }

    def late(self, stored: Iterable[batches.StoredBatch], recorded: Iterable[str]) -> Iterator[BatchAttempts]:
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
