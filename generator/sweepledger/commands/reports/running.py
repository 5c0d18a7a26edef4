"""The trials of active batches while they run: state, objective by step and last output, which git does not have yet.

They are read from the results folder of `sweep run` and `sweep cluster local`, or with kubectl from the pods' logs.
Everything read was written by trials, and is text and numbers only.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweepledger.commands.collection.unrecorded import evaluate_here
from sweepledger.commands.reports.status import TrialState, live_batches, local_states
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.engine.cluster.pods import PodPhase
from sweepledger.engine.local import store
from sweepledger.engine.local.volumes import reported_lines
from sweepledger.formats.metric_lines import objective_points
from sweepledger.repo import batches, volume
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.metric import MetricSource
from sweepledger.structs.record import CurvePoint

MOST_FOLLOWED = 200
"""Trials of a batch whose curves are read: more lines cannot be told apart, and each is a file, or a request."""
MOST_POINTS = 200
LONGEST_OUTPUT = 2000
LOG_LINES = 2000
LOG_BYTES = 256 * 1024

Points = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class RunningTrial:
    """A trial of an active batch."""

    trial: str
    index: int
    state: TrialState
    points: Points = ()
    output: str = ""
    """The end of what it has printed."""


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """An active batch with the trials that have started, as far as they can be seen from here."""

    batch: StoredBatch
    trials: tuple[RunningTrial, ...]

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        metric = self.batch.lock.metric
        counts: dict[str, int] = {}
        for one in self.trials:
            counts[one.state] = counts.get(one.state, 0) + 1
        return {
            "sweep": self.batch.sweep,
            "batch": self.batch.name,
            "metric": metric.name,
            "goal": str(metric.goal),
            "counts": counts,
            "trials": [
                {
                    "trial": one.trial,
                    "state": str(one.state),
                    "steps": [step for step, _ in one.points],
                    "values": [float(f"{value:.6g}") for _, value in one.points],
                    "output": one.output,
                }
                for one in self.trials
                if one.points or one.output or one.state is TrialState.RUNNING
            ],
        }


def running_batches(
    workspace: Workspace, commit: str, *, state: Path, kubectl: Kubectl | None = None
) -> tuple[RunningBatch, ...]:
    """Return the active batches of a commit. Raises ClusterError, StorageError."""
    active = [
        batch
        for batch in batches.readable(batches.in_commit(workspace.repository, commit))
        if batch.is_active
    ]
    if kubectl is None:
        is_running = store.is_engine_running(state)
        return tuple(
            RunningBatch(batch, tuple(_local_trials(batch, state, is_running=is_running))) for batch in active
        )
    observed = live_batches(workspace, kubectl, active, tip=commit, now=time.time())
    namespace = workspace.settings.namespace
    return tuple(
        RunningBatch(batch, tuple(_cluster_trials(batch, observed[batch.name].states, kubectl, namespace)))
        for batch in active
        if batch.name in observed
    )


def _local_trials(batch: StoredBatch, state: Path, *, is_running: bool) -> Iterator[RunningTrial]:
    results = state / "results"
    states: dict[str, TrialState] = {}
    curves: dict[str, Sequence[CurvePoint]] = {}
    if evaluated := evaluate_here(batch, results):
        states |= local_states(evaluated, results, TrialState.PENDING, is_engine_running=is_running)
        compared = batch.lock.metric.of_curve
        curves |= {one.trial: one.record.curve(compared) for one in evaluated.outcomes if one.record}
    started = [
        index for index in range(len(batch.rows)) if (results / batch.name / batch.lock.place(index)).is_dir()
    ]
    followed = frozenset(started[:MOST_FOLLOWED])
    metric = batch.lock.metric
    for index, row in enumerate(batch.rows):
        trial_state = states.get(row.trial, TrialState.PENDING)
        points: Points = tuple((at, value) for at, value in curves.get(row.trial, ()) if value is not None)
        output = b""
        if index in followed and trial_state in {TrialState.RUNNING, TrialState.INTERRUPTED}:
            uid, output = volume.newest_output(results, batch.name, batch.lock.place(index))
            is_printed = metric.source is MetricSource.STDOUT
            points = objective_points(metric, output if is_printed else reported_lines(state, uid))
        yield RunningTrial(row.trial, index, trial_state, _thinned(points), _end(output))


def _cluster_trials(
    batch: StoredBatch, states: Mapping[str, TrialState], kubectl: Kubectl, namespace: str
) -> Iterator[RunningTrial]:
    now, metric = time.time(), batch.lock.metric
    running = {
        pod.index: pod
        for pod in pods.batch_pods(kubectl, namespace, batch.lock, pods.NOT_SUCCEEDED)
        if pod.phase(now) is PodPhase.RUNNING and not pod.is_shared  # in its output all its trials are mixed
    }
    followed = frozenset(sorted(running)[:MOST_FOLLOWED])
    for index, row in enumerate(batch.rows):
        output = b""
        if index in followed:
            try:
                output = pods.output(kubectl, namespace, running[index], lines=LOG_LINES, size=LOG_BYTES)
            except ClusterError:  # the pod has just ended, or its log cannot be read
                output = b""
        points = objective_points(metric, output) if metric.source is MetricSource.STDOUT else ()
        trial_state = states.get(row.trial, TrialState.PENDING)
        yield RunningTrial(row.trial, index, trial_state, _thinned(points), _end(output))


def _thinned(points: Points) -> Points:
    """Return at most so many points in the order of steps, the last among them."""
    ordered = tuple(sorted(dict(points).items()))
    stride = -(-len(ordered) // MOST_POINTS) or 1
    return (*ordered[:-1:stride], *ordered[-1:])


def _end(output: bytes) -> str:
    return output[-LONGEST_OUTPUT:].decode(errors="replace")
