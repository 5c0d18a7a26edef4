"""The controller's decision: desired Jobs and observed state in, actions out. No clock, file or process.

It creates what is new, prunes what is gone, never edits, and never starts an index whose result exists.
A Job that must end ends in two steps: its pods first, then its condition, so that whoever reads the
condition meets no pod that still writes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from generator.engine.local.actions import (
    Action,
    CreateJob,
    FinishJob,
    KillPod,
    PruneJob,
    RefuseEdit,
    StartPod,
)
from generator.engine.local.observed import Condition, Failure, IndexState, JobState, Observed, PodState
from generator.engine.local.quantities import Resources
from generator.engine.local.workload import BatchSpec, JobSpec, Verdict

BAD_SWEEP = 43
"""The exit code by which any trial stops its whole batch."""

FIRST_DELAY_SECONDS = 1.0
LONGEST_DELAY_SECONDS = 60.0
"""Kubernetes waits 10 s to 6 min, for pods that other machines may take; here a pause is enough."""


def reconcile(
    desired: Sequence[BatchSpec], observed: Observed, now: float, *, untouched: Collection[str] = ()
) -> tuple[Action, ...]:
    """Decide what to do next; `untouched` Jobs are asked for, but nobody knows how: they are left alone."""
    pods: dict[str, list[PodState]] = {}
    for pod in observed.pods:
        pods.setdefault(pod.job, []).append(pod)
    wanted = {job.name for batch in desired for job in batch.jobs} | set(untouched)
    actions = list(_prune(sorted(set(observed.jobs) - wanted), pods))
    room = _Room(observed)
    for batch in desired:
        stopped = any(_is_bad_sweep(job, observed.jobs.get(job.name)) for job in batch.jobs)
        for job in batch.jobs:
            state = observed.jobs.get(job.name)
            actions += _decide(job, state, pods.get(job.name, []), room, now, stopped=stopped)
    return tuple(actions)


def retry_at(job: JobSpec, state: IndexState) -> float:
    """Tell from when on an index may be started: later after each failure, by the clock of its records."""
    counted = _counted(job, state)
    if not counted:
        return 0.0
    doublings = min(len(counted) - 1, 16)  # a number that no exponent makes infinite
    return counted[-1].at + min(FIRST_DELAY_SECONDS * float(2**doublings), LONGEST_DELAY_SECONDS)


def is_open(job: JobSpec, state: IndexState) -> bool:
    """Tell whether an index may still be tried, its Job's own fate apart."""
    return state.result is None and not _is_lost(job, state)


def is_retried(job: JobSpec, state: JobState, index: int, now: float) -> bool:
    """Tell whether an index that has failed will be tried again: it may be, and nothing ends its Job."""
    known = state.indexes.get(index, IndexState())
    return state.condition is None and is_open(job, known) and _end(job, state, now, stopped=False) is None


class _Room:
    """What is left of the machine while pods are being placed."""

    def __init__(self, observed: Observed) -> None:
        self._capacity = observed.capacity
        self._slots = observed.slots
        self._used = Resources()
        self._pods = len(observed.pods)
        for pod in observed.pods:
            self._used = self._used.plus(pod.requests)

    def take(self, requests: Resources) -> bool:
        """Claim the room of one more pod, if there is any."""
        used = self._used.plus(requests)
        if not used.fits(self._capacity) or (self._slots is not None and self._pods >= self._slots):
            return False
        self._used = used
        self._pods += 1
        return True


def _prune(names: Iterable[str], pods: Mapping[str, list[PodState]]) -> Iterator[Action]:
    for name in names:
        yield from _kill(pods.get(name, []), "pruned")
        if not pods.get(name):
            yield PruneJob(name)


def _kill(pods: Iterable[PodState], reason: str) -> Iterator[KillPod]:
    return (KillPod(pod.uid, reason) for pod in pods if not pod.stopping)


def _decide(
    job: JobSpec, state: JobState | None, pods: list[PodState], room: _Room, now: float, *, stopped: bool
) -> Iterator[Action]:
    if state is None:
        yield CreateJob(job.name)
    elif state.digest != job.digest:
        yield RefuseEdit(job.name)
    elif state.condition is not None:
        yield from _kill(pods, "finished")
    elif (end := _end(job, state, now, stopped=stopped)) is not None:
        yield from _kill(pods, end.reason)
        if not pods:
            yield end
    else:
        yield from _overdue(job, pods, now)
        yield from _starts(job, state, pods, room, now)


def _overdue(job: JobSpec, pods: list[PodState], now: float) -> Iterator[Action]:
    if job.pod.deadline is not None:
        late = (pod for pod in pods if now - pod.started > (job.pod.deadline or 0))
        yield from _kill(late, "deadline")


def _starts(job: JobSpec, state: JobState, pods: list[PodState], room: _Room, now: float) -> Iterator[Action]:
    busy = {pod.index for pod in pods}
    ready = (index for index in job.indexes if index not in busy and _is_ready(job, state, index, now))
    for index in islice(ready, max(0, job.parallelism - len(pods))):
        if not room.take(job.pod.requests):
            return
        yield StartPod(job.name, index, len(state.indexes.get(index, IndexState()).failures))


def _is_ready(job: JobSpec, state: JobState, index: int, now: float) -> bool:
    known = state.indexes.get(index)
    if known is None:
        return True
    at = retry_at(job, known)
    # A record from the future says that the clock was set back: no reason to wait for it.
    future = bool(known.failures) and known.failures[-1].at > now
    return is_open(job, known) and (at <= now or future)


def _end(job: JobSpec, state: JobState, now: float, *, stopped: bool) -> FinishJob | None:
    """Give the condition that the Job has reached, if any."""
    done = sum(known.result is not None and known.result.is_success for known in state.indexes.values())
    if done == len(job.indexes):
        return FinishJob(job.name, Condition.COMPLETE, "CompletionsReached")
    reason = _policy(job, state) or _exhausted(job, state, done)
    if reason is None and stopped:
        reason = "BatchStopped"
    if reason is None and job.deadline is not None and now - state.created > job.deadline:
        reason = "DeadlineExceeded"
    return None if reason is None else FinishJob(job.name, Condition.FAILED, reason)


def _policy(job: JobSpec, state: JobState) -> str | None:
    """Apply the rules that fail a whole Job. A diverged trial of its own Job is one of their cases."""
    failures = (failure for known in state.indexes.values() for failure in known.failures)
    failed = any(job.verdict(failure.code) is Verdict.FAIL_JOB for failure in failures)
    diverged = not job.indexed and any(known.result is not None for known in state.indexes.values())
    return "PodFailurePolicy" if failed or diverged else None


def _exhausted(job: JobSpec, state: JobState, done: int) -> str | None:
    """Tell whether too many indexes are lost, or too many attempts."""
    lost = sum(_is_lost(job, known) for known in state.indexes.values())
    if not job.per_index and sum(len(_counted(job, known)) for known in state.indexes.values()) > job.retries:
        return "BackoffLimitExceeded"
    if done + lost == len(job.indexes):
        return "FailedIndexes"
    return "MaxFailedIndexesExceeded" if job.max_failed is not None and lost > job.max_failed else None


def _counted(job: JobSpec, state: IndexState) -> list[Failure]:
    return [failure for failure in state.failures if job.verdict(failure.code) is not Verdict.IGNORE]


def _is_lost(job: JobSpec, state: IndexState) -> bool:
    """Tell whether an index has no attempt left."""
    if state.result is not None:
        return not state.result.is_success
    if any(job.verdict(failure.code) is Verdict.FAIL_INDEX for failure in state.failures):
        return True
    return job.per_index and len(_counted(job, state)) > job.retries


def _is_bad_sweep(job: JobSpec, state: JobState | None) -> bool:
    if state is None or job.verdict(BAD_SWEEP) is not Verdict.FAIL_JOB:
        return False
    return any(failure.code == BAD_SWEEP for known in state.indexes.values() for failure in known.failures)
