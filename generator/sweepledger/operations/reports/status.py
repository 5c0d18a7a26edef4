"""`sweep status`: the state of every sweep and its trials, from git and the local engine or the cluster."""

import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.cluster.workloads import BatchWorkloads
from sweepledger.engine.local import store
from sweepledger.errors import RepositoryError, UnreadableError
from sweepledger.operations.collection.attempts import evaluate_here, finished, finished_here, with_unrecorded
from sweepledger.operations.collection.cluster_evidence import find_cluster_batches, stalled_batches
from sweepledger.operations.generation import next_batch
from sweepledger.operations.reports import wait_causes as why
from sweepledger.operations.reports.recorded_status import BestValue, RecordedStatus, StatusIndex
from sweepledger.operations.repository import batch_records, catalog, programs
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.rounds import next_round
from sweepledger.operations.rounds.progress import SearchProgress, search_progress
from sweepledger.problems import Problem, Severity
from sweepledger.repo import batches
from sweepledger.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from sweepledger.repo.git import Checkout, Repository, addition_subjects
from sweepledger.results.doubts import identical_metrics, may_be_identical
from sweepledger.results.outcomes import EvaluatedBatch, evaluate, one_per_trial
from sweepledger.structs.names import LOCK_FILE, RESULTS, SPECS, SUFFIX, results_folder
from sweepledger.structs.record import SummaryRow, TrialResult, pareto_front


class TrialState(StrEnum):
    """The state of a trial. For a trial that several batches list, the first of these counts."""

    OK = "ok"
    PRUNED = "pruned"
    DIVERGED = "diverged"
    RECORDED = "recorded"
    """Its results are on the branch, and not pulled yet."""
    RUNNING = "running"
    """Active, with an attempt started and none final."""
    INTERRUPTED = "interrupted"
    """An attempt has started here, but neither `sweep run` nor `sweep cluster local` runs any more."""
    RETRYING = "retrying"
    """An attempt has failed, and the next runs or is due."""
    NODE_LOST = "node lost"
    """It started on a node that does not respond."""
    ENDED = "ended"
    """Finished in the cluster; the collector has not recorded it yet."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    """Its batch was cancelled before it ended."""
    QUEUED = "queued"
    """Held back in the cluster by a queue or a suspended Job."""
    PAUSED = "paused"
    """Its spec says that no trial of the batch may run now."""
    PENDING = "pending"
    """Merged and not started, as far as is known here."""
    STALLED = "stalled"
    """Its objects are gone from the cluster, and no record shows how it ended."""
    MISSING = "missing"
    """It has ended, or was interrupted, without a record."""
    PLANNED = "planned"
    """Only in batches that are not on the branch that controllers follow."""


STATE_RANKS = {state: rank for rank, state in enumerate(TrialState)}


MOST_NODES = 5
"""Number of batches or pods that a remark names."""
LOST_NODES = (
    "they go on when the node is back; if it is not to come back, `kubectl delete node NAME`, or `kubectl taint node "
    "NAME node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`, and their trials are tried again"
)
"""What to do about pods on nodes that do not respond."""

PHASE_STATES = {
    pods.PodPhase.RUNNING: TrialState.RUNNING,
    pods.PodPhase.LOST: TrialState.NODE_LOST,
    pods.PodPhase.WAITING: TrialState.PENDING,
}
PHASE_RANKS = {phase: rank for rank, phase in enumerate(PHASE_STATES)}
"""The pod with the lowest rank counts if a trial has several."""


@dataclass(frozen=True)
class Remark:
    """A remark on a batch."""

    batch: str
    kind: str
    """node lost, stalled, waiting or infrastructure."""
    message: str
    hint: str


@dataclass(frozen=True)
class LiveBatch:
    """The observed state of a batch in the cluster."""

    states: Mapping[str, TrialState]
    """States by trial id."""
    remarks: tuple[Remark, ...] = ()


def live_batches(
    workspace: Workspace, kubectl: Kubectl, active: Iterable[StoredBatch], *, tip: str | None, now: float
) -> dict[str, LiveBatch]:
    """Return the states of the trials of active batches, if these can be read. Raises ClusterError."""
    settings = workspace.settings
    observed = find_cluster_batches(kubectl, settings.trials.namespace, active)
    active_workloads = [(batch, observed.workloads[batch.name]) for batch in observed.active]
    stuck = {
        stalled.batch: stalled
        for stalled in stalled_batches(workspace.repository, tip, active_workloads, stores=None, now=now)
    }
    live = {}
    explained: list[str] = []
    observer: why.BatchObserver | None = None
    for batch, workloads in active_workloads:
        try:
            trials = [row.trial for row in batch.rows]
        except UnreadableError:
            continue
        stalled = stuck.get(batch.name)
        listed: Iterable[pods.TrialPod] = ()
        if workloads.workloads:
            listed = pods.batch_pods(kubectl, settings.trials.namespace, batch.lock, pods.NOT_SUCCEEDED)
        states, lost = _live_states(batch, workloads, listed, is_stalled=stalled is not None, now=now)
        remarks = []
        if names := sorted(lost):
            shown = ", ".join(names[:MOST_NODES]) + (" …" if len(names) > MOST_NODES else "")
            message = f"{sum(map(len, lost.values()))} pod(s) are on {shown}, which does not respond"
            remarks.append(Remark(batch.name, str(TrialState.NODE_LOST), message, LOST_NODES))
        if stalled is not None:
            recovery = stalled.hint(settings.platform.controller)
            hint = f"the collector records it if every trial left a record; else {recovery}"
            remarks.append(Remark(batch.name, str(TrialState.STALLED), stalled.lacks, hint))
        if len(explained) < MOST_EXPLAINED and WAITING_STATES & {*states}:
            explained.append(batch.name)
            if observer is None:
                collector = why.readable_collector(workspace, kubectl)
                observer = why.BatchObserver(workspace, kubectl, now, None, (), (), collector)
            for group in observer.in_cluster(batch):
                text = f"{len(group.indexes)} trial(s): {group.cause.kind}: {group.cause.text}"
                if group.cause.kind not in why.UNREMARKABLE:
                    remarks.append(Remark(batch.name, "waiting", text, group.cause.remedy))
        live[batch.name] = LiveBatch(dict(zip(trials, states, strict=True)), tuple(remarks))
    return live


def _by_cluster(
    active: Iterable[StoredBatch], cluster: str | None
) -> tuple[list[StoredBatch], dict[str, LiveBatch]]:
    """Return the batches of a cluster, or with an unreadable lock, and a remark for each batch of another cluster."""
    here: list[StoredBatch] = []
    elsewhere: dict[str, LiveBatch] = {}
    for batch in active:
        with suppress(UnreadableError):
            if (other := batch.lock.cluster) != cluster:
                look = f"`sweep status --cluster --in {other}`, with the kubectl context of that cluster"
                remark = Remark(batch.name, "elsewhere", f"runs in cluster {other}", look)
                elsewhere[batch.name] = LiveBatch({}, (remark,))
                continue
        here.append(batch)
    return here, elsewhere


WAITING_STATES = frozenset({TrialState.PENDING, TrialState.QUEUED, TrialState.ENDED})
MOST_EXPLAINED = 20
"""Batches whose waiting trials are explained: each takes several requests, and `sweep why` explains any."""


def _live_states(
    batch: StoredBatch,
    workloads: BatchWorkloads,
    trial_pods: Iterable[pods.TrialPod],
    *,
    is_stalled: bool,
    now: float,
) -> tuple[list[TrialState], Mapping[str, set[str]]]:
    """Return the state of each trial in table order, and the pods on each node that does not respond."""
    trials = batch.lock.trials
    states = dict.fromkeys(range(trials), TrialState.STALLED if is_stalled else TrialState.PENDING)
    for index in workloads.suspended(trials):
        states[index] = TrialState.PAUSED if batch.running.paused else TrialState.QUEUED
    phases: dict[int, pods.PodPhase] = {}
    failed: set[int] = set()
    lost: defaultdict[str, set[str]] = defaultdict(set)
    for pod in trial_pods:
        phase = pod.phase(now)
        if pod.failures or phase is pods.PodPhase.FAILED:
            failed.add(pod.index)
        if phase.is_over:
            continue
        phases[pod.index] = min(phase, phases.get(pod.index, phase), key=PHASE_RANKS.__getitem__)
        if phase is pods.PodPhase.LOST:
            lost[pod.node].add(pod.pod_uid)
    states |= {index: PHASE_STATES[phase] for index, phase in phases.items()}
    for index in failed:
        if states.get(index) in {TrialState.RUNNING, TrialState.PENDING}:
            states[index] = TrialState.RETRYING
    states |= dict.fromkeys(workloads.ended(trials, batch.lock.run.pack), TrialState.ENDED)
    return [states[index] for index in range(trials)], lost


PULL_REQUEST_NUMBER = re.compile(r"(?:\(#|[Pp]ull request #|!)([0-9]{1,9})\b", re.ASCII)
"""The pull request in the subject of a merge, as GitHub, Gitea and GitLab write it."""
README = "README.md"


def _origin(
    repository: Repository, tip: str | None, sweep: str, stored: Iterable[StoredBatch]
) -> Mapping[str, Any]:
    """Return the paths of a sweep's files, and the pull request of each batch if the merge's subject has one."""
    subjects = addition_subjects(repository, tip, ACTIVE) if tip else {}
    merges = {
        batch.folder: PULL_REQUEST_NUMBER.search(subjects.get(f"{ACTIVE}/{batch.name}/{LOCK_FILE}", ""))
        for batch in stored
    }
    batches_of = [
        {"folder": folder, "pull_request": int(number[1]) if number else None}
        for folder, number in merges.items()
    ]
    paths = (f"{SPECS}/{sweep}{SUFFIX}", f"{results_folder(sweep)}/{README}")
    spec, results = (path if (repository.folder / path).is_file() else None for path in paths)
    return {"spec": spec, "batches": batches_of, "results": results}


@dataclass(frozen=True)
class SweepStatus:
    """A sweep's trials by state."""

    sweep: str
    batches: int
    """Batches in the work tree, active or archived; none while the sweep is only a spec."""
    active: tuple[str, ...]
    """Active batches of the work tree."""
    counts: Counter[str]
    """Number of trials by state."""
    metric: str = ""
    best: BestValue | None = None
    """The best trial by the first metric."""
    front: tuple[str, ...] = ()
    """The ids of the Pareto front, if there are several metrics."""
    remarks: tuple[Remark, ...] = ()
    """Remarks on its batches: in the cluster, and on recorded trials if one sweep was requested."""
    problems: tuple[Problem, ...] = ()
    """Why batches cannot be read; their trials are not counted."""
    edits: tuple[Problem, ...] = ()
    """Active batches that were edited by hand, with the way back."""
    mistakes: tuple[Problem, ...] = ()
    """Problems of its spec, if one sweep was requested, or if the sweep has no batch yet."""
    search: SearchProgress | None = None
    origin: Mapping[str, Any] | None = None
    """Its spec, batches and results, if one sweep was requested."""
    laptop: tuple[str, ...] = ()
    """Recorded batches that are marked as made on a laptop."""
    doubts: tuple[str, ...] = ()
    """Why its numbers may be wrong."""

    @property
    def trials(self) -> int:
        """Number of trials, each counted once."""
        return self.counts.total()


def sweep_statuses(
    workspace: Workspace,
    reference: str | None = None,
    *,
    state: Path,
    kubectl: Kubectl | None = None,
    clock: Callable[[], float] = time.time,
) -> tuple[SweepStatus, ...]:
    """Count the trials of one sweep, or of all sweeps with a spec or a batch.

    The state of active batches comes from the cluster if one can be reached. An unreadable batch is a problem
    of its sweep. Raises UsageError, ClusterError.
    """
    stored, repository = batches.in_work_tree(workspace.root), workspace.repository
    known = catalog.sweep_names(workspace, stored)
    wanted = known if reference is None else {catalog.choose_sweep(workspace.root, reference, known)}
    tip, head = workspace.base_commit(None), repository.commit("HEAD")
    followed, recorded = catalog.batch_names(repository, tip), catalog.batch_names(repository, tip, ARCHIVE)
    mirrored = catalog.mirrored(state, workspace.settings.git.branch)
    active = [batch for batch in stored if batch.is_active and batch.sweep in wanted]
    live: dict[str, LiveBatch] = {}
    if kubectl is not None:
        running = (batch for batch in active if batch.name in followed)
        here, live = _by_cluster(running, workspace.cluster)
        live |= live_batches(workspace, kubectl, here, tip=tip, now=clock())
    counter = _TrialCounter(
        repository,
        head,
        followed,
        state / "results",
        live,
        recorded if mirrored is None else recorded | catalog.batch_names(*mirrored, ARCHIVE),
        Checkout(repository, RESULTS),
        is_engine_running=store.is_engine_running(state),
    )
    progress = dict(_search_progress(workspace, wanted, tip, stored))
    by_sweep = batches.by_sweep(stored)
    committed = batches.in_commit(repository, head if active else None, ACTIVE)
    edits = {sweep: tuple(_batch_edits(own, committed)) for sweep, own in batches.by_sweep(active).items()}
    index = StatusIndex.read(workspace.root, state)
    statuses = tuple(
        replace(
            _indexed_status(sweep, replace(counter, stored=by_sweep.get(sweep, ())), index),
            mistakes=_spec_problems(workspace, sweep) if reference or sweep not in by_sweep else (),
            search=progress.get(sweep),
            edits=edits.get(sweep, ()),
            laptop=catalog.laptop_batches_here(workspace.root, sweep, counter.checkout),
        )
        for sweep in sorted(wanted)
    )
    index.write(workspace.repository, known)
    if reference is None:
        return statuses
    # One sweep also has a remark on the recorded trials that infrastructure ended, as `sweep why` explains them.
    (status,) = statuses
    origin = _origin(repository, tip, status.sweep, by_sweep.get(status.sweep, ()))
    lost = next_round.lost_trials_at(repository, tip, status.sweep).values()
    groups = Counter((trial.batch, why.lost_cause(status.sweep, trial)) for trial in lost)
    remarks = (
        Remark(batch, "infrastructure", f"{count} trial(s): {cause.text}", cause.remedy)
        for (batch, cause), count in groups.items()
    )
    return (replace(status, origin=origin, remarks=(*status.remarks, *remarks)),)


STATES = frozenset(TrialState)


def _indexed_status(sweep: str, counter: "_TrialCounter", index: StatusIndex) -> SweepStatus:
    """Return the status of a sweep, from the index if the sweep does not run here and no file has changed."""
    stored = counter.stored
    # The states of a batch that runs follow from more than files of the work tree and its view.
    running = (
        batch.name in counter.live or os.path.lexists(f"{counter.results}/{batch.name}")
        for batch in stored
        if batch.is_active
    )
    if not stored or any(running):
        return _sweep_status(sweep, counter)
    views = tuple(counter.view(batch) for batch in stored)
    known = index.get(sweep, stored, views)
    if known is not None and known.counts.keys() <= STATES:
        active = tuple(batch.name for batch in stored if batch.is_active)
        counts = Counter(known.counts)
        return SweepStatus(sweep, len(stored), active, counts, known.metric, known.best, known.front)
    status = _sweep_status(sweep, counter)
    # Which of several programs is ranked depends on the commit that is checked out.
    is_settled = not (status.problems or status.remarks or status.doubts)
    if is_settled and len({one.lock.program.digest for one in stored}) == 1:
        index.put(
            sweep, stored, views, RecordedStatus(status.counts, status.metric, status.best, status.front)
        )
    return status


def _batch_edits(active: Iterable[StoredBatch], committed: Iterable[StoredBatch]) -> Iterator[Problem]:
    for error in next_batch.edits(committed, active):
        message = f"was edited by hand: {', '.join(error.paths)}"
        yield Problem(error.folder, 0, 0, "", message, "batch-edited", error.hint, Severity.WARNING)


def _spec_problems(workspace: Workspace, sweep: str) -> tuple[Problem, ...]:
    """Return the problems of a spec. The specs of all sweeps are not read: there may be many."""
    path = workspace.root / next_round.spec_path(sweep)
    read = workspace.parse(path) if path.is_file() else ()
    return read if isinstance(read, tuple) else ()


def _search_progress(
    workspace: Workspace, wanted: Container[str], tip: str | None, stored: Sequence[StoredBatch]
) -> Iterator[tuple[str, SearchProgress]]:
    searches = [search for search in next_round.searches_in_work_tree(workspace) if search.name in wanted]
    names = catalog.batch_names(workspace.repository, tip) if searches else frozenset()
    for sweep in searches:
        here = batches.readable(batches.of_sweep(stored, sweep.name))
        new = [batch for batch in here if batch.name not in names]
        merged = batches.of_sweep_in_commit(workspace.repository, tip, sweep.name)
        yield sweep.name, search_progress(workspace, sweep, tip, merged, new)


def _sweep_status(sweep: str, counter: "_TrialCounter") -> SweepStatus:
    active = tuple(batch.name for batch in counter.stored if batch.is_active)
    table = catalog.read_summary(counter.root, sweep, counter.checkout) if counter.stored else None
    recorded = table.rows if table else ()
    counts, problems = counter.counts(recorded)
    readable = batches.readable(counter.stored)
    newest = readable[-1].lock if readable else None
    waiting = (batch for batch in readable if batch.name not in counter.recorded)
    unrecorded = finished_here(waiting, counter.results)
    rows, new = with_unrecorded(recorded, unrecorded)
    head = programs.ranked_program(counter.repository, counter.head, [batch.lock for batch in readable])
    eligible = catalog.eligible_rows(rows, readable, head)
    metric = newest.metric.name if newest else ""
    ranked = catalog.rank_rows(eligible, metric, newest.metric.goal)[:1] if newest else ()
    return SweepStatus(
        sweep,
        batches=len(counter.stored),
        active=active,
        counts=counts,
        metric=metric,
        best=next(
            (BestValue(row.trial, row.metric(metric), (row.batch, row.index) not in new) for row in ranked),
            None,
        ),
        front=tuple(row.trial for row, _ in pareto_front(eligible, newest.metrics if newest else ())),
        doubts=tuple(_doubts(counter.root, readable, eligible, unrecorded)),
        remarks=tuple(
            remark for name in active if name in counter.live for remark in counter.live[name].remarks
        ),
        problems=problems,
    )


def _doubts(
    root: Path,
    stored: Sequence[StoredBatch],
    eligible: Sequence[SummaryRow],
    unrecorded: Iterable[TrialResult],
) -> Iterator[str]:
    """Yield doubts because of equal numbers in trials of the ranked program."""
    if not eligible or not may_be_identical(eligible, stored[-1].lock.metric.name):
        return
    program = eligible[0].program
    trials = [one for one in unrecorded if one.program == program]
    for batch in stored:
        if not batch.is_active and batch.lock.program.digest == program:
            with suppress(RepositoryError):  # `sweep verify` names what cannot be read
                trials += evaluate(batch_records.results_here(root, batch)).outcomes
    yield from (doubt.text for doubt in identical_metrics(one_per_trial(trials), stored[-1].lock.metrics))


@dataclass(frozen=True)
class _TrialCounter:
    """A sweep's batches, and where the states of their trials come from."""

    repository: Repository
    head: str | None
    followed: frozenset[str]
    """Batches that controllers see."""
    results: Path
    """This machine's results volume."""
    live: Mapping[str, LiveBatch]
    """The observed state of active batches in the cluster, if there is one."""
    recorded: frozenset[str]
    """Batches whose results are on the branch."""
    checkout: Checkout
    """What git has of the results."""
    is_engine_running: bool
    """Whether an engine runs trials on this machine now."""
    stored: tuple[StoredBatch, ...] = ()

    @property
    def root(self) -> Path:
        """The work tree."""
        return self.repository.folder

    def view(self, batch: StoredBatch) -> str:
        """Return the inputs, other than files, that determine the states of a batch's trials."""
        if not batch.is_active:
            return ""
        return f"{batch.name in self.followed:d}{batch.name in self.recorded:d}"

    def counts(self, rows: tuple[SummaryRow, ...]) -> tuple[Counter[str], tuple[Problem, ...]]:
        """Count the trials by state; return why the trials of some batches are missing."""
        listed = Counter(row.batch for row in rows)
        states = [(row.trial, TrialState(row.status.kind)) for row in rows]
        problems: list[Problem] = []
        for batch in self.stored:
            try:
                states += self._states(batch.vetted(), listed[batch.name])
            except UnreadableError as error:
                problems += error.problems
        states.sort(key=lambda state: STATE_RANKS[state[1]], reverse=True)
        return Counter[str](dict(states).values()), tuple(problems)

    def _states(self, batch: StoredBatch, listed: int) -> Iterable[tuple[str, TrialState]]:
        """Return the states of a batch's trials, given those in the summary. Raises UnreadableError."""
        if batch.is_active and batch.name in self.recorded:
            return ((row.trial, TrialState.RECORDED) for row in batch.rows)
        if batch.is_active:
            if (live := self.live.get(batch.name)) is not None:
                return live.states.items()
            waiting = TrialState.PAUSED if batch.running.paused else TrialState.PENDING
            unknown = waiting if batch.name in self.followed else TrialState.PLANNED
            evaluated = evaluate_here(batch, self.results)
            if evaluated is None:
                return ((row.trial, unknown) for row in batch.rows)
            return local_states(evaluated, self.results, unknown, is_engine_running=self.is_engine_running)
        if not (self.root / batch.records_file()).is_file():  # it was cancelled, and is not recorded yet
            return ((row.trial, TrialState.CANCELLED) for row in batch.rows)
        return ((row.trial, TrialState.MISSING) for row in batch.rows if listed < batch.lock.trials)


def local_states(
    evaluated: EvaluatedBatch, results: Path, unknown: TrialState, *, is_engine_running: bool
) -> Iterator[tuple[str, TrialState]]:
    """Yield the state of each trial of an active batch by its results on a machine; `unknown` if it has none."""
    started = TrialState.RUNNING if is_engine_running else TrialState.INTERRUPTED
    ended = {outcome.index for outcome in finished(evaluated)}
    for outcome in evaluated.outcomes:
        if outcome.index in ended:
            yield outcome.trial, TrialState(outcome.status.kind)
        elif (results / evaluated.lock.name / evaluated.lock.place(outcome.index)).is_dir():
            yield outcome.trial, started
        else:
            yield outcome.trial, unknown
