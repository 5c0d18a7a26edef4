"""Stores of results that need pods: their records are in the messages of pods, or in a bucket and confirmed there.

Pods are released once git has what they say.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sweepledger.commands.collection import cluster_evidence
from sweepledger.commands.collection.attempts import BatchAttempts, TrialReader, with_late_records
from sweepledger.commands.collection.record_store import RecordStore
from sweepledger.commands.repository import batch_records
from sweepledger.commands.repository.workspace import Target
from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.cluster.workloads import BatchWorkloads
from sweepledger.errors import UnreadableError
from sweepledger.formats import manifest_fields
from sweepledger.problems import Problem
from sweepledger.repo import batches
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.kubernetes import BATCH_LABEL
from sweepledger.structs.names import SETTINGS_FILE, results_folder
from sweepledger.structs.settings import ResultsStore

MOST_NAMED = 10
"""Rows that a remark names."""
BUCKET_HINT = "let `results` name the bucket again until the batch is recorded"


@dataclass
class PodStore:
    """The pods of batches that are held for their records."""

    kubectl: Kubectl
    namespace: str
    now: float
    bucket: RecordStore | None = None
    """The bucket of the settings."""
    incomplete: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Trials with a pod that ended before all its files were in the bucket, by batch that was read."""
    alive: dict[str, int] = field(default_factory=dict)
    """How many pods have not ended, by batch that was read."""
    _attempts: dict[str, BatchAttempts] = field(default_factory=dict)
    _held: dict[str, list[str]] = field(default_factory=dict)
    """Names of the ended pods of each batch that was read, as far as they are held."""

    def has(self, batch: batches.StoredBatch) -> bool:
        """Return whether the records of a batch need its pods. Raises UnreadableError."""
        return batch.lock.store.holds_pods

    def read(self, batch: batches.StoredBatch) -> BatchAttempts:
        """Return the attempts of all trials that have ended.

        Raises ClusterError, UnreadableError, StorageError for a bucket.
        """
        name = batch.vetted().name
        self._held[name] = []
        attempts = self._in_bucket(batch) if batch.lock.store is ResultsStore.BUCKET else self._in_pods(batch)
        self._attempts[name] = attempts
        return attempts

    def _in_bucket(self, batch: batches.StoredBatch) -> BatchAttempts:
        """Return what the bucket has of a batch, as far as pods or a seal confirm it, and what only pods say."""
        if self.bucket is None:
            message = f"its records are in a bucket, and {SETTINGS_FILE} has none"
            problem = Problem(batch.folder, 0, 0, "store", message, "batch-unreadable", BUCKET_HINT)
            raise UnreadableError(problem)
        name = batch.name
        found = BatchAttempts.read(self.bucket, batch, by_engine=False)
        account = cluster_evidence.PodAccount(
            cluster_evidence.expected_records(batch),
            found.confirmed_records,
            stored=found.unconfirmed_records,
        )
        account.add_pods(self._trial_pods(batch.lock), self.now)
        self.alive[name], self.incomplete[name] = account.alive, tuple(sorted(account.incomplete))
        known = found.confirmed_records + account.confirmed
        ignored, doubts = found.passed_over, account.doubts()
        return BatchAttempts(
            batch,
            (*map(account.explained, known), *account.records()),
            {
                index: (*ignored.get(index, ()), *doubts.get(index, ()))
                for index in sorted({*ignored, *doubts})
            },
            account.silent_seconds,
        )

    def _in_pods(self, batch: batches.StoredBatch) -> BatchAttempts:
        name, account = batch.name, cluster_evidence.PodAccount(cluster_evidence.expected_records(batch))
        account.add_pods(self._trial_pods(batch.lock), self.now)
        files = account.reported()
        reader = TrialReader(batch, lambda index: files.get(index, ()), by_engine=False)
        records, passed_over = reader.read(range(len(batch.rows)))
        attempts = BatchAttempts(
            batch,
            (*map(account.explained, records), *account.substitutes()),
            passed_over,
            account.silent_seconds,
        )
        self.alive[name] = account.alive
        return attempts

    def _trial_pods(self, batch: BatchLock) -> Iterator[pods.TrialPod]:
        for manifest in pods.batch_manifests(self.kubectl, self.namespace, batch.name):
            if pods.has_ended(manifest) and pods.is_held(manifest):
                self._held[batch.name].append(manifest_fields.text_at(manifest, "metadata", "name"))
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
        names = {manifest_fields.text_at(manifest, "metadata", "labels", BATCH_LABEL) for manifest in held}
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
