"""The observed state of batches in a cluster: running, ended, missing and stalled objects, and records from pods.

Records are in the messages of pods, or in a store and confirmed there. Pods are released once git has their evidence.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import chain

from sweepledger.controllers import GITOPS
from sweepledger.engine import termination
from sweepledger.engine.cluster import pod_termination, pods, workloads
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.cluster.pods import PodPhase, TrialPod
from sweepledger.engine.cluster.workloads import BatchWorkloads
from sweepledger.formats import manifest_fields, record_json
from sweepledger.operations.collection.attempts import BatchAttempts, TrialReader, with_late_records
from sweepledger.operations.collection.record_store import RecordStores
from sweepledger.operations.repository import batch_records
from sweepledger.operations.repository.workspace import Target
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository, present_since
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.kubernetes import BAD_HYPERPARAMETERS, BATCH_LABEL
from sweepledger.structs.names import results_folder
from sweepledger.structs.record import Record, Status
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Controller

FRESH_SECONDS = 600
"""Seconds that a controller may take to apply a merged batch before it counts as stalled: three usual polls."""

REMEDIES: Mapping[Controller, str] = {
    **{own.name: own.repair for own in GITOPS.values()},
    Controller.SUBMIT: "`sweep submit {batch}`, with `--again` if its Jobs were deleted",
    Controller.NONE: "apply its overlay again",
}


@dataclass(frozen=True)
class StalledBatch:
    """An active batch whose objects are missing from the cluster."""

    batch: str
    sweep: str
    lacks: str
    """Which objects the cluster lacks; all that it has have ended."""

    @property
    def text(self) -> str:
        """Return why the batch is stalled."""
        return f"{self.lacks}, and the records do not say how all trials ended"

    def hint(self, controller: Controller) -> str:
        """Return the user's remedy."""
        way = REMEDIES[controller].format(batch=self.batch)
        return f"{way}; or `sweep cancel {self.sweep} --batch {self.batch}`"


def expected_objects(batch: StoredBatch) -> int:
    """Return how many objects run a batch's trials."""
    return 1 if batch.lock.shape is Shape.INDEXED else batch.lock.trials


def stalled_batches(
    repository: Repository,
    tip: str | None,
    active: Iterable[tuple[StoredBatch, BatchWorkloads]],
    *,
    stores: RecordStores | None,
    now: float,
) -> Iterator[StalledBatch]:
    """Yield the active batches whose Jobs are missing, except those that the controller has not had time to apply.

    A batch with a folder on the results volume was applied at least once. Raises StorageError.
    """
    for batch, observed in active:
        count, wanted = len(observed.workloads), expected_objects(batch)
        if observed.is_running or count >= wanted:
            continue
        has_begun = stores is not None and stores.of(batch).has_begun(batch.name)
        merged_at = None if has_begun or tip is None else present_since(repository, tip, batch.folder)
        if has_begun or (merged_at is not None and merged_at < now - FRESH_SECONDS):
            kind = batch.lock.shape.kind.kind
            lacks = f"the cluster has {count} of its {wanted} {kind}(s)"
            yield StalledBatch(batch.name, batch.lock.sweep, lacks)


LAG_SECONDS = 600
"""Seconds after its Job's end that a batch waits for records of successful trials.

An NFS client can show a folder as it was a minute ago, other shared volumes some minutes ago. Ten minutes are
two runs of a collector that runs every five. A file that is missing by then does not appear.
"""
SILENT_CODES = {Status.OK: 0, Status.PRUNED: 0, Status.DIVERGED: BAD_HYPERPARAMETERS}
"""Exit codes of a launcher that finds a final record and writes none."""


@dataclass(frozen=True)
class PendingRecords:
    """A batch whose Job has ended, but whose records cannot all be read yet."""

    batch: str
    trials: int
    """Number of successful trials without a record."""
    pods: int
    """Number of pods that have not ended."""
    until: float
    """Time at which the batch is recorded without them, in seconds since 1970."""


UNCONFIRMED = "unconfirmed"
"""The reason for ignoring a record in a bucket: no pod of the trial says that it wrote this content."""


@dataclass
class PodAccount:
    """The evidence of a batch's attempts in records and pods; keeps only the necessary data of each pod."""

    expected: tuple[termination.ExpectedRecord, ...]
    known: InitVar[Iterable[Record]] = ()
    stored: Mapping[tuple[int, str, str], Record] = field(default_factory=dict)
    """Records in a bucket by index, attempt and SHA-256: they count once a pod of the index confirms them."""
    at_once: int = 1
    """How many trials a pod runs at the same time."""
    final: dict[int, Status] = field(default_factory=dict)
    """Final statuses of trials, from valid records."""
    _known: set[tuple[int, str]] = field(default_factory=set)
    """Attempts with a record, by index and pod: a trial could name another trial's pod."""
    _causes: dict[tuple[int, str], str | None] = field(default_factory=dict)
    """Why pods ended, if their launchers could not know it, by index and pod."""
    _begun: dict[int, list[float]] = field(default_factory=dict)
    """Start times of the attempts at a trial, as far as they are known."""
    _reported: list[Record] = field(default_factory=list)
    """Records that pods reported and the volume does not have."""
    _observed: dict[tuple[int, str], tuple[str, str]] = field(default_factory=dict)
    """When the containers of ended pods ran, by index and pod."""
    _silent: list[tuple[int, float, termination.Termination]] = field(default_factory=list)
    """Pods without a record: index of the trial, creation time, end."""
    _shared: dict[int, tuple[float, termination.Termination]] = field(default_factory=dict)
    """By trial, creation time and end of the last pod of several trials that left no record of it."""
    _packs: dict[str, "_PackedPod"] = field(default_factory=dict)
    """Ended pods of several trials, by id."""
    alive: set[str] = field(default_factory=set)
    """Pods that have not ended."""
    _confirmed: dict[tuple[int, str], Record] = field(default_factory=dict)
    incomplete: set[int] = field(default_factory=set)
    """Trials with a pod that ended before its sidecar had saved everything."""
    _heard: set[str] = field(default_factory=set)
    """Pods of several trials whose messages have been read."""

    def __post_init__(self, known: Iterable[Record]) -> None:
        for record in known:
            if record.index < len(self.expected) and self.expected[record.index].expects(record):
                self._add_record(record)

    def add_pods(
        self, observed: Iterable[TrialPod], now: float, *, only: Container[int] | None = None
    ) -> None:
        """Add the evidence of some pods."""
        for pod in observed:
            if pod.index >= len(self.expected):
                continue
            phase = pod.phase(now)
            times = pod_termination.observed_times(pod) if phase.is_over else None
            if times is not None and pod.is_shared:
                self._packs.setdefault(pod.pod_uid, _PackedPod(times)).attempts.add((pod.index, pod.uid))
            elif times is not None:
                self._observed[pod.index, pod.uid] = times
            if phase.is_over:
                self._add_stored(pod)
            if only is not None and pod.index not in only:
                continue
            if not phase.is_over:
                # A pod that waits for a node or an image will not write a record.
                self.alive |= {pod.pod_uid} if phase is not PodPhase.WAITING else set()
            elif (pod.index, pod.uid) in self._known:
                self._causes[pod.index, pod.uid] = pod_termination.external_cause(pod)
            else:
                self._add_ended_pod(pod)
        for packed in self._packs.values():
            self._observed |= packed.shares(self._known, self.at_once)

    def _add_stored(self, pod: TrialPod) -> None:
        digests, is_complete = pod_termination.stored_records(pod)
        if not is_complete:
            self.incomplete.add(pod.index)
        if not self.stored:
            return
        if not pod.is_shared:
            for uid, sha256 in digests:
                self._confirm(self.stored.get((pod.index, uid, sha256)))
        elif pod.pod_uid not in self._heard:
            # A pod of several trials says the same of all their records for each of them.
            self._heard.add(pod.pod_uid)
            for uid, row in pod_termination.vouched_rows(pod, self._digests_by_pod):
                self._confirm(self.stored.get((row, f"{uid}-{row}", self._digests_by_pod[uid][row])))

    @cached_property
    def _digests_by_pod(self) -> dict[str, dict[int, str]]:
        """SHA-256 of the records in a bucket, by the pod of several trials that wrote them, and row."""
        digests: defaultdict[str, dict[int, str]] = defaultdict(dict)
        for index, uid, sha256 in self.stored:
            pod, _, row = uid.rpartition("-")
            if row == str(index):
                digests[pod][index] = sha256
        return dict(digests)

    def _confirm(self, record: Record | None) -> None:
        """Count a record in a bucket that a pod has confirmed as the record of a trial."""
        if record is None or (record.index, record.uid) in self._confirmed:
            return
        self._confirmed[record.index, record.uid] = record
        if (record.index, record.uid) not in self._known and self.expected[record.index].expects(record):
            self._add_record(record)

    @property
    def confirmed(self) -> tuple[Record, ...]:
        """The records in a bucket that pods confirm."""
        return tuple(record for _, record in sorted(self._confirmed.items()))

    def doubts(self) -> Mapping[int, tuple[str, ...]]:
        """Return why records in a bucket do not count, by trial."""
        reasons: defaultdict[int, tuple[str, ...]] = defaultdict(tuple)
        for (index, uid, _), record in self.stored.items():
            if self._confirmed.get((index, uid)) is not record:
                reasons[index] += (UNCONFIRMED,)
        return reasons

    def explained(self, record: Record) -> Record:
        """Return a record with the cause and the times that the cluster reports."""
        return self._with_times(termination.with_cause(record, self._causes.get((record.index, record.uid))))

    def records(self) -> Iterator[Record]:
        """Yield a record for each attempt without one on the volume."""
        yield from map(self.explained, self._reported)
        yield from self.substitutes()

    def reported(self) -> Mapping[int, list[bytes]]:
        """Return the messages of pods without a record in the store as files of records, by index."""
        files: dict[int, list[bytes]] = {}
        for record in self._reported:
            # A later pod may have confirmed the record of an earlier one.
            if (record.index, record.uid) not in self._confirmed:
                files.setdefault(record.index, []).append(record_json.to_line(record).encode())
        return files

    def substitutes(self) -> Iterator[Record]:
        """Yield a substitute for each attempt that left no record."""
        for index, created, ended in self._silent:
            if self._is_idle(index, ended) or (index, ended.uid) in self._confirmed:
                continue  # its trial had a final record already
            number = ended.attempt or 1 + sum(begun < created for begun in self._begun[index])
            record = pod_termination.substitute_record(self.expected[index], replace(ended, attempt=number))
            if record is not None:
                yield self._with_times(record)

        recorded = {index for index, _ in self._known}
        for index, (_, ended) in sorted(self._shared.items()):
            # Only where no record says anything: a pod of several trials may end before one of them has begun.
            record = pod_termination.substitute_record(self.expected[index], replace(ended, attempt=1))
            if index not in recorded and record is not None:
                yield record

    @property
    def silent_seconds(self) -> Mapping[int, float]:
        """Seconds of pods without a record of their own, because their trials already had a final record, by index."""
        seconds: defaultdict[int, float] = defaultdict(float)
        for index, _, ended in self._silent:
            if self._is_idle(index, ended):
                seconds[index] += ended.finished - ended.started
        for packed in self._packs.values():
            if packed.attempts.isdisjoint(self._known):  # somebody has used its time, whatever trials say
                for (index, _), times in packed.shares(packed.attempts, self.at_once).items():
                    seconds[index] += _seconds_of(times)
        return dict(seconds)

    def _is_idle(self, index: int, ended: termination.Termination) -> bool:
        """Return whether a pod ended like a launcher that finds a final record at its start."""
        return ended.reason is None and ended.code == SILENT_CODES.get(self.final.get(index, Status.MISSING))

    def _with_times(self, record: Record) -> Record:
        return replace(record, observed=self._observed.get((record.index, record.uid)))

    def _add_ended_pod(self, pod: TrialPod) -> None:
        if pod.is_shared:
            before = self._shared.get(pod.index, (0.0,))
            if pod.created >= before[0]:
                self._shared[pod.index] = pod.created, pod_termination.read_termination(pod)
            return
        record = pod_termination.read_record(pod, self.expected[pod.index])
        if record is not None:
            self._reported.append(record)
            self._causes[pod.index, pod.uid] = pod_termination.external_cause(pod)
            self._add_record(record)
        else:
            self._begun.setdefault(pod.index, []).append(pod.created)
            self._silent.append((pod.index, pod.created, pod_termination.read_termination(pod)))

    def _add_record(self, record: Record) -> None:
        self._known.add((record.index, record.uid))
        began = manifest_fields.time_at({"at": record.started}, "at")
        self._begun.setdefault(record.index, []).append(began or 0.0)
        if record.status.is_final and self.final.get(record.index) is not Status.OK:
            self.final[record.index] = record.status


@dataclass(frozen=True)
class _PackedPod:
    """An ended pod of several trials: its time is known, but not how much of it each trial used."""

    times: tuple[str, str]
    attempts: set[tuple[int, str]] = field(default_factory=set)
    """Its attempts at trials, by index and id."""

    def shares(
        self, recorded: Container[tuple[int, str]], at_once: int
    ) -> dict[tuple[int, str], tuple[str, str]]:
        """Divide the pod's time equally among its recorded attempts, each of which occupied one slot."""
        own = [attempt for attempt in sorted(self.attempts) if attempt in recorded]
        if not own:
            return {}
        start = datetime.fromisoformat(self.times[0]).timestamp()
        each = _seconds_of(self.times) * min(1.0, at_once / len(own))
        # Records have whole seconds: what all of them have is the pod's time.
        ends = [round(each * number) for number in range(len(own) + 1)]
        return {
            attempt: (self.times[0], record_json.format_time(start + after - before))
            for attempt, before, after in zip(own, ends, ends[1:], strict=False)
        }


def _seconds_of(times: tuple[str, str]) -> float:
    start, end = map(datetime.fromisoformat, times)
    return (end - start).total_seconds()


@dataclass(frozen=True)
class AllExcept:
    """Every batch except those known to be gone; a batch that appeared meanwhile counts as alive."""

    gone: frozenset[str]

    def __contains__(self, name: object) -> bool:
        """Return whether a batch must be taken to be alive."""
        return name not in self.gone


@dataclass(frozen=True)
class ClusterBatches:
    """The observed state of batches in a cluster."""

    active: tuple[StoredBatch, ...]
    workloads: Mapping[str, BatchWorkloads]
    """Objects of the active batches, by name."""
    alive: AllExcept

    @property
    def ended(self) -> frozenset[str]:
        """Return the names of the batches whose objects all exist and have ended."""
        return frozenset(
            batch.name
            for batch in self.active
            if self.workloads[batch.name].have_ended(expected_objects(batch))
        )

    @property
    def without_objects(self) -> set[str]:
        """The batches whose objects are missing, but whose pods may tell how every trial ended."""
        return {
            batch.name
            for batch in self.active
            if batch.lock.store.facts.holds_pods
            and not self.workloads[batch.name].is_running
            and batch.name not in self.ended
        }


def find_cluster_batches(
    kubectl: Kubectl, namespace: str, active: Iterable[StoredBatch], cancelled: Iterable[StoredBatch] = ()
) -> ClusterBatches:
    """Return the objects of active batches, and the cancelled batches that have no object or pod any more.

    Batches with an unreadable lock are omitted. Raises ClusterError.
    """
    running, stopped = batches.readable(active), batches.readable(cancelled)
    shapes = {batch.lock.shape for batch in (*running, *stopped)}
    by_batch = workloads.list_workloads(kubectl, namespace, shapes)

    def workloads_of(batch: StoredBatch) -> BatchWorkloads:
        return by_batch.get((batch.name, workloads.api_path(batch.lock.shape)), BatchWorkloads())

    def is_gone(batch: StoredBatch) -> bool:
        if not batch.lock.store.facts.holds_pods:
            return not workloads_of(batch).workloads and not pods.has_pods(kubectl, namespace, batch.name)
        # Its pods are there until they have been recorded, and a Job may wait for its pods.
        return all(one.is_deleted for one in workloads_of(batch).workloads) and all(
            map(pods.has_ended, pods.batch_manifests(kubectl, namespace, batch.name))
        )

    gone = frozenset(batch.name for batch in stopped if is_gone(batch))
    return ClusterBatches(running, {batch.name: workloads_of(batch) for batch in running}, AllExcept(gone))


def _account(
    batch: StoredBatch, known: Iterable[Record], stored: Mapping[tuple[int, str, str], Record]
) -> PodAccount:
    """Return the evidence of a batch before its pods are added."""
    expected = (
        termination.ExpectedRecord.of(batch.lock, trial.index, trial.trial, trial.row, trial.replicate)
        for trial in batch_records.expected_trials(batch)
    )
    return PodAccount(tuple(expected), known, stored, batch.lock.run.trials_per_pod)


MOST_NAMED = 10
"""Rows that a remark names."""


@dataclass
class PodStore:
    """The pods of batches, which are held until their records are read."""

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

    def read(self, batch: StoredBatch) -> BatchAttempts:
        """Return the attempts of all ended trials whose stored records are confirmed by pods or a seal.

        Raises ClusterError, UnreadableError, StorageError.
        """
        name = batch.vetted().name
        self._held[name] = []
        stored = BatchAttempts.read(self.stores.of(batch), batch, by_engine=False)
        account = _account(batch, stored.confirmed_records, stored.unconfirmed_records)
        account.add_pods(self._trial_pods(batch.lock), self.now)
        self.alive[name] = len(account.alive)
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
                self._held[batch.name].append(manifest_fields.text_at(manifest, "metadata", "name"))
            yield from pods.trial_pods(manifest, batch)

    @property
    def remarks(self) -> Iterator[str]:
        """Yield a remark on each batch of which the bucket lacks files, with the rows of the trials."""
        for name, indexes in sorted(self.incomplete.items()):
            if indexes:
                rows = ", ".join(map(str, indexes[:MOST_NAMED]))
                more = f" and {len(indexes) - MOST_NAMED} more" if len(indexes) > MOST_NAMED else ""
                yield f"{name}: the bucket lacks files of row {rows}{more}"

    def complete(self, attempts: BatchAttempts, objects: BatchWorkloads) -> BatchAttempts | PendingRecords:
        """Add the evidence of a batch's pods and objects, or return what the batch waits for. Raises ClusterError.

        The status of a pod is complete as soon as the pod has ended: if pods are held for their records,
        only running pods are waited for.
        """
        lock, name = attempts.batch.lock, attempts.batch.name
        missing, alive = frozenset[int](), self.alive.get(name, 0)
        if objects.workloads and not lock.store.facts.holds_pods:
            account = _account(attempts.batch, attempts.records, {})
            listed = partial(pods.batch_pods, self.kubectl, self.namespace, lock)
            account.add_pods(listed(pods.NOT_SUCCEEDED), self.now)
            succeeded = objects.succeeded(lock.trials, lock.run.pack)
            # Only pods tell how long they ran.
            only = succeeded - account.final.keys()
            account.add_pods(listed(pods.SUCCEEDED), self.now, only=only)
            missing, alive = succeeded - account.final.keys(), len(account.alive)
            records = (*map(account.explained, attempts.records), *account.records())
            attempts = replace(attempts, records=records, silent_seconds=account.silent_seconds)
        alive = 0 if objects.is_running else alive
        until = (objects.finished or 0.0) + LAG_SECONDS
        if (missing or alive) and self.now < until:
            return PendingRecords(name, len(missing), alive, until)
        # The only record of a trial whose pods are gone gets the times of its Job, if it has its own.
        times = {
            workload.index: (record_json.format_time(observed[0]), record_json.format_time(observed[1]))
            for workload in objects.workloads
            if (observed := workload.observed) is not None
        }
        counts = Counter(record.index for record in attempts.records)
        timed = (
            replace(record, observed=times[record.index])
            if record.observed is None and record.index in times and counts[record.index] == 1
            else record
            for record in attempts.records
        )
        return replace(attempts, records=tuple(timed))

    def late(self, stored: Iterable[StoredBatch], recorded: Iterable[str]) -> Iterator[BatchAttempts]:
        """Yield the attempts of recorded batches that still have pods. Raises ClusterError."""
        known = {batch.name: batch for batch in stored}
        active = [name for name, batch in known.items() if batch.is_active]
        held = pods.held_pods(self.kubectl, self.namespace, apart_from=active)
        names = {manifest_fields.text_at(manifest, "metadata", "labels", BATCH_LABEL) for manifest in held}
        # Only the locks of these are read: an archive has thousands.
        late = batches.readable(known[name] for name in sorted(names & {*recorded} & known.keys()))
        yield from (self.read(batch) for batch in late if batch.lock.store.facts.holds_pods)

    def release(self, target: Target) -> None:
        """Release the ended pods that were read if the branch has all their evidence.

        Raises ClusterError, RepositoryError.
        """
        held = {name: names for name, names in self._held.items() if names}
        if not held:
            return
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
