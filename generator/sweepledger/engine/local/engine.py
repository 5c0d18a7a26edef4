"""The controller's loop and the node's, on one machine: observe, decide (`reconcile`), act.

What became of a trial is read from its records, at the start and again before a pod is started: the
process that asks may have been killed at any moment before.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self
from uuid import uuid4

from generator.engine.local import attempts, events, launching, leftovers, machine, reconcile, store, volumes
from generator.engine.local.actions import (
    Action,
    CreateJob,
    FinishJob,
    KillPod,
    PruneJob,
    RefuseEdit,
    StartPod,
)
from generator.engine.local.events import Event, Progress
from generator.engine.local.launching import Desired, Pod
from generator.engine.local.node import Node, PodExit
from generator.engine.local.observed import IndexState, JobState, Observed
from generator.engine.local.quantities import Resources
from generator.engine.local.workload import JobSpec
from generator.structs.record import Status

ROUNDS = 8
"""Of deciding in one step: what is created is started, what is finished makes room; more can wait."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A Job that git asks for, with what its pods need."""

    desired: Desired
    job: JobSpec


class LocalEngine:
    """Follows what it is told to desire. One engine a state folder; close it, and no process is left."""

    def __init__(
        self,
        state: Path,
        *,
        capacity: Resources | None = None,
        slots: int | None = None,
        without_gpu: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folders = volumes.Folders(state.resolve())
        self._lock: int | None = store.lock(self._folders.state)
        self._clock = clock
        self._slots = slots
        self._without_gpu = without_gpu
        self.capacity = machine.capacity() if capacity is None else capacity
        self._node = Node()
        self._pods: dict[str, Pod] = {}
        self._ended: list[PodExit] = []
        self._known: dict[str, _Known] = {}
        self._indexes: dict[str, dict[int, IndexState]] = {}
        self._codes: dict[str, int] = {}
        self._refused: set[str] = set()
        try:
            self.leftovers_ended = self._clear()
            self._entries = store.load(self._folders.state)
        except BaseException:
            self.close()
            raise

    def _clear(self) -> int:
        """End what an earlier engine left, before any record is read: it may be writing one."""
        uids = [folder.name for folder in self._folders.pods.glob("*")]
        ended = leftovers.end(uids)
        for uid in uids:
            volumes.remove_pod(self._folders, uid)
        return ended

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all pods, without a grace: an attempt that leaves no record does not count against retries."""
        if self._lock is None:
            return
        self._node.close()
        for uid in self._pods:
            volumes.remove_pod(self._folders, uid)
        self._pods.clear()
        os.close(self._lock)
        self._lock = None

    def wait(self, seconds: float) -> None:
        """Wait until a pod ends, at most so long."""
        self._node.wait(seconds)

    @property
    def is_settled(self) -> bool:
        """Tell whether every Job that was last desired has its condition, and no pod is left."""
        entries = (self._entries.get(name) for name in self._known)
        return not self._pods and all(entry is not None and entry.condition for entry in entries)

    def progress(self) -> dict[str, Progress]:
        """Count how the trials of each desired batch stand."""
        found: dict[str, Progress] = {}
        for name, known in self._known.items():
            one = self._progress(name, known.job)
            seen = found.get(known.job.batch, Progress(0, 0, 0, 0, 0))
            found[known.job.batch] = Progress(
                seen.total + one.total,
                seen.ok + one.ok,
                seen.diverged + one.diverged,
                seen.failed + one.failed,
                seen.running + one.running,
                seen.pruned + one.pruned,
            )
        return found

    def _progress(self, name: str, job: JobSpec) -> Progress:
        states = self._indexes.get(name, {})
        counts = Counter(state.result for state in states.values())
        ok, diverged, pruned = counts[Status.OK], counts[Status.DIVERGED], counts[Status.PRUNED]
        ended = ok + diverged + pruned
        entry = self._entries.get(name)
        if entry is not None and entry.condition:
            failed = len(job.indexes) - ended
        else:
            failed = sum(not reconcile.is_open(job, state) for state in states.values()) - ended
        running = sum(pod.job.name == name for pod in self._pods.values())
        return Progress(len(job.indexes), ok, diverged, failed, running, pruned)

    def step(self, desired: Sequence[Desired], *, untouched: Collection[str] = ()) -> tuple[Event, ...]:
        """Do all that can be done now, without waiting. Jobs of `untouched` batches are left as they are.

        Raises StorageError and RepositoryError; nothing is lost by calling again, or by starting again.
        """
        if self._without_gpu:
            desired = [replace(one, batch=machine.without_gpus(one.batch)) for one in desired]
        self._known = {job.name: _Known(one, job) for one in desired for job in one.batch.jobs}
        happened = list(self._collect())
        for name in self._known:
            self._observe(name)
        kept = [name for name, entry in self._entries.items() if entry.batch in untouched]
        for _ in range(ROUNDS):
            actions = reconcile.reconcile(
                [one.batch for one in desired], self._observed(), self._clock(), untouched=kept
            )
            acted = [event for action in actions for event in self._act(action)]
            if any(isinstance(action, CreateJob | FinishJob | PruneJob) for action in actions):
                # Once a round: of a batch with a Job a trial, all are taken on, or none.
                store.save(self._folders.state, self._entries)
            happened += acted
            if not acted:
                break
        return tuple(happened)

    def _observe(self, name: str) -> None:
        """Read all records of a Job when it is first seen; later only those of pods that end."""
        if name not in self._indexes:
            self._indexes[name] = {}
            for index in self._known[name].job.indexes:
                self._refresh(self._known[name], index)

    def _refresh(self, known: _Known, index: int) -> IndexState:
        batch, job = known.desired.batch, known.job
        folder = volumes.trial_folder(self._folders, job, index)
        state = attempts.read(folder, attempts.asked(batch, index), self._codes)
        if state != IndexState():
            self._indexes.setdefault(job.name, {})[index] = state
        return state

    def _observed(self) -> Observed:
        jobs = {name: self._state(name, entry) for name, entry in self._entries.items()}
        pods = tuple(pod.state for pod in self._pods.values())
        return Observed(jobs, pods, self.capacity, self._slots)

    def _state(self, name: str, entry: store.JobEntry) -> JobState:
        indexes = MappingProxyType(self._indexes.get(name, {}))
        return JobState(entry.digest, entry.created, entry.condition, indexes)

    def _act(self, action: Action) -> Iterator[Event]:
        match action:
            case CreateJob(name):
                yield self._create(name)
            case RefuseEdit(name):
                if name not in self._refused:
                    self._refused.add(name)
                    yield events.EditRefused(self._known[name].job.batch, name)
            case StartPod(name, index, failures):
                yield from self._start(self._known[name], index, failures)
            case KillPod(uid, reason):
                self._pods[uid] = replace(self._pods[uid], stopping=reason)
                self._node.stop(uid)
            case FinishJob(name, condition, reason):
                entry = replace(self._entries[name], condition=condition, reason=reason)
                self._entries[name] = entry
                yield events.JobFinished(entry.batch, name, condition, reason)
            case PruneJob(name):
                volumes.remove_configs(self._folders, name)
                self._indexes.pop(name, None)
                self._refused.discard(name)
                yield events.JobPruned(self._entries.pop(name).batch, name)

    def _create(self, name: str) -> Event:
        known = self._known[name]
        volumes.write_configs(self._folders, known.desired.batch, known.job)
        self._entries[name] = store.JobEntry(str(uuid4()), known.job.batch, known.job.digest, self._clock())
        return events.JobCreated(known.job.batch, name)

    def _start(self, known: _Known, index: int, failures: int) -> Iterator[Event]:
        job = known.job
        before = self._indexes[job.name].get(index, IndexState())
        if self._refresh(known, index) != before:
            return  # a record appeared: the decision was made without it
        volumes.write_configs(self._folders, known.desired.batch, job)
        pod = Pod(known.desired, job, index, failures, str(uuid4()), self._clock())
        place = launching.place(pod, self._pods.values(), self.capacity)
        pod = replace(pod, cpus=place.cpus, gpus=place.gpus)
        launch = launching.launch(pod, self._folders, self.capacity)
        self._pods[pod.uid] = pod
        self._node.start(launch)
        yield events.PodStarted(pod.attempt)

    def _collect(self) -> Iterator[Event]:
        self._ended += self._node.ended()
        while self._ended:
            # An end leaves the list once its record is safe: a full disk may be given room meanwhile.
            ended = self._ended[0]
            pod = self._pods[ended.uid]
            self._codes[pod.uid] = ended.code
            event = launching.settle(pod, ended, self._folders, self._clock())
            del self._pods[pod.uid], self._ended[0]
            volumes.remove_pod(self._folders, pod.uid)
            state = self._refresh(_Known(pod.desired, pod.job), pod.index)
            if not self._is_retried(pod):
                yield event
                continue
            yield replace(event, tries=max(pod.job.retries, event.attempt.number) + 1)
            until = reconcile.retry_at(pod.job, state)
            yield events.Waiting(pod.job.batch, pod.job.name, pod.index, until)

    def _is_retried(self, pod: Pod) -> bool:
        name, entry = pod.job.name, self._entries.get(pod.job.name)
        if name not in self._known or entry is None:
            return False
        return reconcile.is_retried(pod.job, self._state(name, entry), pod.index, self._clock())
