"""The Job controller: it computes actions from desired Jobs and observed state. No clock, file or process.

It creates new Jobs, prunes those that are not desired any more, never edits one, and never starts an index that
has a result. A Job ends in two steps: first its pods, then its condition, so that no pod of an ended Job writes.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice

from msgspec import Struct

from sweepledger.engine.local.events import EditRefused, JobCondition, JobCreated, JobFinished, JobPruned
from sweepledger.engine.local.local_batch import LocalBatch, LocalPod, ResourceAmounts
from sweepledger.structs.kubernetes import BAD_HYPERPARAMETERS, BAD_SWEEP, DISRUPTED
from sweepledger.structs.record import Status


class FailedAttempt(Struct, frozen=True):
    """An attempt that failed, with its exit code and the time of its record."""

    code: int
    at: float


class IndexState(Struct, frozen=True):
    """The state of one index according to its records."""

    result: Status | None = None
    """`ok`, `pruned` or `diverged`; None if the trial has not finished."""
    failures: tuple[FailedAttempt, ...] = ()
    """By time."""


class IndexStates(dict[int, IndexState]):
    """The states of all indexes with records, counted as they change, so that no decision has to read each state."""

    def __init__(self, states: Mapping[int, IndexState] | None = None) -> None:
        super().__init__()
        self.results = Counter[Status | None]()
        self.failing: dict[int, IndexState] = {}
        """Those with failures, by index."""
        self._first_open = 0
        for index, state in (states or {}).items():
            self[index] = state

    def __setitem__(self, index: int, state: IndexState) -> None:
        """Set the state of an index."""
        if (before := self.get(index)) is not None:
            self.results[before.result] -= 1
        self.results[state.result] += 1
        self.failing.pop(index, None)
        if state.failures:
            self.failing[index] = state
        if state.result is None:
            self._first_open = 0
        super().__setitem__(index, state)

    @property
    def successes(self) -> int:
        """The number of indexes that have succeeded."""
        return sum(
            count for status, count in self.results.items() if status is not None and status.is_success
        )

    @property
    def finished(self) -> int:
        """The number of indexes with a result."""
        return self.results.total() - self.results[None]

    def without_finished(self, indexes: Sequence[int]) -> Sequence[int]:
        """Return the indexes of a Job, starting at the first without a result."""
        while self._first_open < len(indexes):
            state = self.get(indexes[self._first_open])
            if state is None or state.result is None:
                break
            self._first_open += 1
        return indexes[self._first_open :]


class JobState(Struct, frozen=True):
    """A Job that was created."""

    digest: str
    created: float
    """Seconds since 1970, from which the Job's deadline counts."""
    condition: JobCondition | None = None
    reason: str | None = None


class ObservedState(Struct, frozen=True):
    """The state of the machine."""

    jobs: Mapping[str, JobState]
    indexes: Mapping[str, IndexStates]
    """Those of each Job that has records."""
    pods: tuple[LocalPod, ...]
    capacity: ResourceAmounts
    slots: int | None = None
    """Maximum number of pods at a time; None: as many as fit."""


class StartPod(Struct, frozen=True):
    """Start an attempt after a number of failed ones, or attempts at several rows."""

    job: str
    index: int
    """The row, or the number of a pod that runs several."""
    failures: int
    """Of the row; 0 if it runs several, whose failures differ."""


class KillPod(Struct, frozen=True):
    """Stop a pod."""

    uid: str
    reason: str


Action = JobCreated | EditRefused | StartPod | KillPod | JobFinished | JobPruned
"""What the engine does; an event of a Job is yielded when it has been brought about."""


MIN_DELAY_SECONDS = 1.0
MAX_DELAY_SECONDS = 60.0
"""Kubernetes waits 10 s to 6 min, so that another node may become free; one machine needs only a pause."""


def reconcile(
    desired: Sequence[LocalBatch], observed: ObservedState, now: float, *, untouched: Collection[str] = ()
) -> tuple[Action, ...]:
    """Return the next actions; `untouched` Jobs are desired, but their content is unknown, so they are kept."""
    pods: dict[str, list[LocalPod]] = {}
    for pod in observed.pods:
        pods.setdefault(pod.batch.name, []).append(pod)
    names = {job.name for job in desired} | set(untouched)
    actions: list[Action] = []
    for name in sorted(set(observed.jobs) - names):
        actions += _kill(pods.get(name, []), "pruned") if pods.get(name) else [JobPruned(name)]
    free = _FreeCapacity(observed)
    for job in desired:
        states = observed.indexes.get(job.name) or IndexStates()
        actions += _decide(job, observed.jobs.get(job.name), states, pods.get(job.name, []), free, now)
    return tuple(actions)


def is_open(job: LocalBatch, state: IndexState) -> bool:
    """Return whether an index may have another attempt if its Job has not ended."""
    return state.result is None and not _is_lost(job, state)


def given_up(job: LocalBatch, states: IndexStates) -> int:
    """Return how many indexes have failed without a result and without another attempt."""
    return sum(state.result is None and _is_lost(job, state) for state in states.failing.values())


def is_retried(job: LocalBatch, state: JobState, states: IndexStates, index: int, now: float) -> bool:
    """Return whether a failed index will have another attempt: it may, and its Job continues."""
    may_go_on = state.condition is None and is_open(job, states.get(index, IndexState()))
    return may_go_on and _end(job, state, states, now) is None


class _FreeCapacity:
    """The free capacity of the machine while pods are placed."""

    def __init__(self, observed: ObservedState) -> None:
        self._capacity = observed.capacity
        self._slots = observed.slots
        self._used = ResourceAmounts()
        self._pods = len(observed.pods)
        for pod in observed.pods:
            self._used = self._used.plus(pod.batch.requests)

    def take(self, requests: ResourceAmounts) -> bool:
        """Reserve the capacity for a pod; return whether there was enough."""
        used = self._used.plus(requests)
        if not used.fits(self._capacity) or (self._slots is not None and self._pods >= self._slots):
            return False
        self._used = used
        self._pods += 1
        return True


def _kill(pods: Iterable[LocalPod], reason: str) -> Iterator[KillPod]:
    return (KillPod(pod.uid, reason) for pod in pods if pod.stopping is None)


def _decide(
    job: LocalBatch,
    state: JobState | None,
    states: IndexStates,
    pods: list[LocalPod],
    free: _FreeCapacity,
    now: float,
) -> Iterator[Action]:
    if state is None:
        yield JobCreated(job.name)
        return
    if state.digest != job.digest:  # it goes on as it was stored
        yield EditRefused(job.name)
    if state.condition is not None:
        yield from _kill(pods, "finished")
    elif (end := _end(job, state, states, now)) is not None:
        yield from _kill(pods, end.reason)
        if not pods:
            yield end
    else:
        if job.pod_deadline is not None:
            late = (pod for pod in pods if now - pod.started > (job.pod_deadline or 0))
            yield from _kill(late, "deadline")
        busy = {pod.index for pod in pods}
        ready = (
            number
            for number, rows in groupby(states.without_finished(job.indexes), job.pod_number)
            if number not in busy and any(_is_ready(job, states.get(row, IndexState()), now) for row in rows)
        )
        for number in islice(ready, 0 if job.is_paused else max(0, job.parallelism - len(pods))):
            if not free.take(job.requests):
                return
            failures = 0 if job.pack else len(states.get(number, IndexState()).failures)
            yield StartPod(job.name, number, failures)


def _is_ready(job: LocalBatch, known: IndexState, now: float) -> bool:
    """Return whether an index may have an attempt now: later after each failure, by the records' clock."""
    if not known.failures or not is_open(job, known):
        return known == IndexState()
    doublings = min(len(known.failures) - 1, 16)  # so that the power stays finite
    failed_at = known.failures[-1].at
    # A record from the future means that the clock was set back, which must not delay the next attempt.
    return failed_at > now or failed_at + min(MIN_DELAY_SECONDS * 2.0**doublings, MAX_DELAY_SECONDS) <= now


def _end(job: LocalBatch, state: JobState, states: IndexStates, now: float) -> JobFinished | None:
    done = states.successes
    if done == len(job.indexes):
        return JobFinished(job.name, JobCondition.COMPLETE, "CompletionsReached")
    lost = states.finished - done + given_up(job, states)
    if any(failure.code == BAD_SWEEP for known in states.failing.values() for failure in known.failures):
        reason = "PodFailurePolicy"
    elif done + lost == len(job.indexes):
        reason = "FailedIndexes"
    elif job.max_failed is not None and lost > job.max_failed:
        reason = "MaxFailedIndexesExceeded"
    elif job.deadline is not None and not job.is_paused and now - state.created > job.deadline:
        reason = "DeadlineExceeded"
    else:
        return None
    return JobFinished(job.name, JobCondition.FAILED, reason)


def _is_lost(job: LocalBatch, state: IndexState) -> bool:
    """Return whether an index has failed without another attempt."""
    if state.result is not None:
        return not state.result.is_success
    if any(failure.code in {BAD_HYPERPARAMETERS, DISRUPTED} for failure in state.failures):
        return True
    return len(state.failures) > job.retries
