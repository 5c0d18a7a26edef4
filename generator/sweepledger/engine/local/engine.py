"""The loop of controller and node on one machine: observe, decide (`reconcile`), act.

The state of a trial is read from its records, at the start and again before a pod is started, because an
earlier engine may have been killed at any time.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from msgspec.structs import replace

from sweepledger.engine.local import (
    attempt_records,
    events,
    job_controller,
    machine,
    node,
    pod_folders,
    pods,
    store,
)
from sweepledger.engine.local.events import (
    BatchProgress,
    EditRefused,
    EngineEvent,
    JobCondition,
    JobCreated,
    JobFinished,
    JobPruned,
)
from sweepledger.engine.local.job_controller import (
    Action,
    IndexState,
    IndexStates,
    JobState,
    KillPod,
    ObservedState,
    StartPod,
)
from sweepledger.engine.local.local_batch import DesiredBatch, LocalBatch, LocalPod, ResourceAmounts
from sweepledger.engine.local.node import Node, PodExit
from sweepledger.structs.record import Status

MAX_PASSES = 8
"""Decisions per step: created Jobs start pods, and finished Jobs free capacity; the rest waits for the next step."""


class LocalEngine:
    """Runs the desired batches, one engine per state folder. After `close` no process is left."""

    def __init__(
        self,
        state: Path,
        *,
        capacity: ResourceAmounts | None = None,
        slots: int | None = None,
        launcher: Path | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Lock the state folder, and kill processes of an earlier engine. `launcher` is that of the package."""
        self._folders = pod_folders.StateFolders(state.resolve())
        self._lock: int | None = store.lock_state(self._folders.state)
        # It begins with the time of day, and neither jumps nor counts while the machine sleeps.
        ahead = time.time() - time.monotonic()
        self._clock = clock or (lambda: ahead + time.monotonic())
        self._slots = slots
        self.capacity = machine.capacity() if capacity is None else capacity
        self._node = Node(launcher)
        self._pods: dict[str, LocalPod] = {}
        self._left: dict[str, list[str]] = {}
        """By the state of the code, ended pods whose folders others can have."""
        self._ended: list[PodExit] = []
        self._desired: dict[str, DesiredBatch] = {}
        self._indexes: dict[str, IndexStates] = {}
        self._codes: dict[str, int] = {}
        self._failed_pods = Counter[tuple[str, int]]()
        """By Job and pod of several rows, how many pods have failed here, as a Job controller counts them."""
        self._refused: set[str] = set()
        self._failures: dict[str, list[str]] = {}
        """By batch, why each trial failed that failed here."""
        self._reported: set[str] = set()
        try:
            self.leftovers_killed = self._clear()
            self._entries = {
                # A deadline counts what engines run: not what the machine slept or was switched off.
                name: entry if entry.condition else replace(entry, created=self._clock())
                for name, entry in store.load_jobs(self._folders.state).items()
            }
        except BaseException:
            self.close()
            raise

    def _clear(self) -> int:
        """Kill processes of an earlier engine before any record is read, because they may be writing one."""
        uids = [folder.name for folder in self._folders.pods.glob("*")]
        killed = node.kill_pod_processes(uids)
        for uid in uids:
            pod_folders.remove_pod(self._folders, uid)
        pod_folders.remove_short_links(self._folders)
        return killed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all pods without a grace period: an attempt without a record does not count as a retry."""
        if self._lock is None:
            return
        self._node.close()
        for uid in self._pods:
            pod_folders.remove_pod(self._folders, uid)
        self._pods.clear()
        self._remove_left()
        os.close(self._lock)
        self._lock = None

    def wait(self, seconds: float) -> None:
        """Wait until a pod ends, at most `seconds`."""
        self._node.wait(seconds)

    @property
    def is_settled(self) -> bool:
        """Whether every desired Job has its condition, and no pod is left."""
        entries = (self._entries.get(name) for name in self._desired)
        return not self._pods and all(entry is not None and entry.condition for entry in entries)

    @property
    def conditions(self) -> dict[str, JobCondition | None]:
        """The condition of each created Job by batch, sorted; None while it has not ended."""
        return {name: entry.condition for name, entry in sorted(self._entries.items())}

    def progress(self) -> dict[str, BatchProgress]:
        """Return the number of trials in each state, by desired batch."""
        return {name: self._progress(desired.batch) for name, desired in self._desired.items()}

    def _progress(self, batch: LocalBatch) -> BatchProgress:
        states = self._indexes.get(batch.name) or IndexStates()
        ok, diverged, pruned = (states.results[each] for each in (Status.OK, Status.DIVERGED, Status.PRUNED))
        entry = self._entries.get(batch.name)
        if entry is not None and entry.condition:
            failed = len(batch.indexes) - states.finished
        else:
            failed = job_controller.given_up(batch, states)
        pods = (pod for pod in self._pods.values() if pod.batch.name == batch.name)
        running = sum(self._running(pod, states) for pod in pods)
        return BatchProgress(len(batch.indexes), ok, diverged, failed, running, pruned)

    def _running(self, pod: LocalPod, states: Mapping[int, IndexState]) -> int:
        """Return how many rows of a pod still run, according to the records read so far."""
        if pod.batch.pack is None:
            return 1
        left = sum(job_controller.is_open(pod.batch, states.get(row, IndexState())) for row in pod.rows)
        return min(left, pod.batch.pack.at_once)

    def step(
        self, desired: Sequence[DesiredBatch], *, untouched: Collection[str] = ()
    ) -> tuple[EngineEvent, ...]:
        """Do everything that is possible now without waiting, and return the events.

        Jobs of `untouched` batches are not changed. Raises StorageError and RepositoryError; it is safe to
        call it again, also in a new engine.
        """
        self._desired = {item.batch.name: item for item in desired}
        history = list(self._collect())
        for name, item in self._desired.items():
            if name not in self._indexes:
                # Of a new Job, all records are read; later only those of ended pods.
                self._indexes[name] = IndexStates()
                for index in item.batch.indexes:
                    self._refresh(item.batch, index)
        held = self.held(desired)
        history += self._pauses(held)
        desired = [
            replace(item, batch=replace(item.batch, is_paused=True)) if item in held else item
            for item in desired
        ]
        for _ in range(MAX_PASSES):
            running = tuple(self._pods.values())
            observed = ObservedState(self._entries, self._indexes, running, self.capacity, self._slots)
            actions = job_controller.reconcile(
                [item.batch for item in desired], observed, self._clock(), untouched=untouched
            )
            acted = [event for action in actions for event in self._act(action)]
            if any(isinstance(action, JobCreated | JobFinished | JobPruned) for action in actions):
                # Once per pass, so that all Jobs of a batch are stored together.
                store.save_jobs(self._folders.state, self._entries)
            history += acted
            if not acted:
                break
        if not self._pods:
            self._remove_left()
        return tuple(history)

    def _remove_left(self) -> None:
        for uids in self._left.values():
            while uids:
                pod_folders.remove_pod(self._folders, uids.pop())
        pod_folders.remove_pods_folder(self._folders)

    def held(self, desired: Sequence[DesiredBatch]) -> tuple[DesiredBatch, ...]:
        """Return the batches whose first trials failed here without any ok trial, so that no further trial starts."""
        counts = self.progress()
        return tuple(
            item
            for item in desired
            if 0 < item.failures <= len(self._failures.get(item.batch.name, ()))
            and (progress := counts.get(item.batch.name)) is not None
            and not progress.ok + progress.pruned
        )

    def _pauses(self, held: Sequence[DesiredBatch]) -> Iterator[EngineEvent]:
        """Yield one event for each of these batches, when its last running trial has ended."""
        counts = self.progress()
        for name in (item.batch.name for item in held):
            if not counts[name].running and counts[name].open and name not in self._reported:
                self._reported.add(name)
                yield events.BatchPaused(name, tuple(self._failures[name]), counts[name].open)

    def _refresh(self, batch: LocalBatch, index: int) -> IndexState:
        folder = pod_folders.trial_folder(self._folders, batch, index)
        state = attempt_records.read_attempts(folder, batch.trials[index], self._codes)
        if state != IndexState():
            self._indexes.setdefault(batch.name, IndexStates())[index] = state
        return state

    def _act(self, action: Action) -> Iterator[EngineEvent]:
        match action:
            case JobCreated(name):
                batch = self._desired[name].batch
                pod_folders.write_files(self._folders, batch)
                self._entries[name] = JobState(batch.digest, self._clock())
                yield action
            case EditRefused(name):
                if name not in self._refused:
                    self._refused.add(name)
                    yield action
            case StartPod(name, index, failures):
                yield from self._start(self._desired[name], index, failures)
            case KillPod(uid, reason):
                self._pods[uid] = replace(self._pods[uid], stopping=reason)
                self._node.stop(uid)
            case JobFinished(name, condition, reason):
                self._entries[name] = replace(self._entries[name], condition=condition, reason=reason)
                yield action
            case JobPruned(name):
                pod_folders.remove_files(self._folders, name)
                self._indexes.pop(name, None)
                self._refused.discard(name)
                self._entries.pop(name)
                yield action

    def _start(self, desired: DesiredBatch, index: int, failures: int) -> Iterator[EngineEvent]:
        batch = desired.batch
        before = {row: self._indexes[batch.name].get(row, IndexState()) for row in batch.rows(index)}
        if {row: self._refresh(batch, row) for row in before} != before:
            return  # a record has appeared since the decision
        pod_folders.write_files(self._folders, batch)
        if batch.pack is not None:
            failures = self._failed_pods[batch.name, index]
        pod = LocalPod(desired, index, failures, str(uuid4()), self._clock())
        pod = pods.with_devices(pod, self._pods.values(), self.capacity)
        if pods.can_share_copies(pod) and (left := self._left.get(pod.desired.code_state)):
            pod_folders.take_pod(self._folders, left.pop(), pod.uid)
        launch = pods.prepare_launch(pod, self._folders, self.capacity)
        self._pods[pod.uid] = pod
        self._node.start(launch)
        for row, state in before.items():
            if job_controller.is_open(batch, state):
                yield events.PodStarted(pod.attempt(row, len(state.failures)))

    def _collect(self) -> Iterator[EngineEvent]:
        self._ended += self._node.ended()
        while self._ended:
            # Remove the exit only after its record is written: the disk may be full at first.
            pod_exit = self._ended[0]
            pod = self._pods[pod_exit.uid]
            self._codes[pod.uid] = pod_exit.code
            self._failed_pods[pod.batch.name, pod.index] += pod_exit.code != 0
            now = self._clock()
            ended = tuple(pods.settle_pod(pod, pod_exit, self._folders, now))
            if pod.batch.pack is None:  # of several rows, it does not say when each ran
                store.add_observed(
                    self._folders.state,
                    store.ObservedPod(pod.batch.name, pod.index, pod.uid, pod.started, max(pod.started, now)),
                )
            del self._pods[pod.uid], self._ended[0]
            # With another end, a process of it may go on, or a note on its copy is not the launcher's.
            is_left = pod_exit.reason is None and pod_exit.code == 0 and pods.can_share_copies(pod)
            if is_left and pod_folders.leave_pod(self._folders, pod.uid):
                self._left.setdefault(pod.desired.code_state, []).append(pod.uid)
            else:
                pod_folders.remove_pod(self._folders, pod.uid)
            for row in pod.rows:
                self._refresh(pod.batch, row)
            for event in ended:
                yield self._ended_event(pod.batch, event)

    def _ended_event(self, batch: LocalBatch, event: events.PodEnded) -> events.PodEnded:
        name, entry = batch.name, self._entries.get(batch.name)
        states, index = self._indexes.get(name) or IndexStates(), event.attempt.index
        is_retried = job_controller.is_retried
        if entry and name in self._desired and is_retried(batch, entry, states, index, self._clock()):
            return replace(event, attempts=max(batch.retries, event.attempt.number) + 1)
        if event.status.kind is Status.FAILED:
            self._failures.setdefault(name, []).append(event.error)
        return event
