"""Why the trials of batches do not run, according to git and the cluster, with the remedy for each cause."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sweepledger.controllers import GITOPS
from sweepledger.engine.cluster import batch_objects, causes, collector_state
from sweepledger.engine.cluster.causes import CauseKind, TrialCauses, WaitCause
from sweepledger.engine.cluster.collector_state import CollectorState
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.errors import ToolError
from sweepledger.operations.repository import batch_records, catalog
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.rounds.next_round import LostTrial, lost_trials_at
from sweepledger.repo import batches
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.platform import Names
from sweepledger.structs.record import Status, SummaryRow
from sweepledger.structs.settings import Controller, ResultsMode


@dataclass(frozen=True)
class BatchExplanation:
    """The causes for the trials of one batch, or of trials that are in no batch yet."""

    batch: str | None
    causes: tuple[TrialCauses, ...]
    ids: tuple[str, ...] = ()
    """Ids of all trials of the batch, by index."""
    logs: str | None = None
    """Where a log system shows the output of the trial, if one trial is explained."""

    def as_data(self) -> dict[str, object]:
        """Return the JSON data."""
        return {
            "batch": self.batch,
            "logs": self.logs,
            "causes": [
                {
                    "cause": str(group.cause.kind),
                    "count": len(group.indexes),
                    "trials": [self.ids[index] for index in group.indexes if index < len(self.ids)],
                    "message": group.cause.text,
                    "remedy": group.cause.remedy or None,
                }
                for group in self.causes
            ],
        }


@dataclass(frozen=True)
class BatchObserver:
    """A repository, and the cluster that its trials run in, at a time."""

    workspace: Workspace
    kubectl: Kubectl | None
    now: float
    tip: str | None
    """The base commit: what controllers follow, as last fetched."""
    here: tuple[batches.StoredBatch, ...]
    """Batches of the work tree."""
    there: tuple[batches.StoredBatch, ...]
    """Batches of the base commit."""
    collector: CollectorState | ToolError | None
    """The collector of the cluster; the error if it cannot be read."""
    _lost: dict[str, dict[str, LostTrial]] = field(default_factory=dict, compare=False)
    """Computed once for each sweep, which may have many batches."""

    @classmethod
    def of(cls, workspace: Workspace, kubectl: Kubectl | None, now: float) -> "BatchObserver":
        """Return an observer that has read the batches and the collector."""
        tip = workspace.base_commit(None)
        here, there = batches.in_work_tree(workspace.root), batches.in_commit(workspace.repository, tip)
        return cls(workspace, kubectl, now, tip, here, there, _read_collector(workspace, kubectl))

    @property
    def branch(self) -> str:
        """The branch that controllers follow, for messages."""
        return f"{self.workspace.remote}/{self.workspace.settings.git.branch}"

    def of_sweep(self, sweep: str) -> tuple[batches.StoredBatch, ...]:
        """Return the batches of a sweep in the work tree, and those that only the base commit has."""
        mine = batches.of_sweep(self.here, sweep)
        names = {batch.name for batch in mine}
        return (*mine, *(batch for batch in batches.of_sweep(self.there, sweep) if batch.name not in names))

    def explain(self, batch: batches.StoredBatch) -> BatchExplanation:
        """Return the causes for the trials of a batch. Raises UnreadableError."""
        lock, ids = batch.vetted().lock, tuple(row.trial for row in batch.rows)
        committed = {other.name: other for other in self.there}.get(batch.name)
        if committed is None or not committed.is_active or not batch.is_active:
            cause = self._outside(batch, committed)
            if cause.kind is CauseKind.RECORDED:
                return BatchExplanation(batch.name, tuple(self._recorded(batch, cause)), ids)
        elif lock.cluster is None and self.workspace.cluster is not None:
            text = "it is merged, from when there was one cluster, which had no name"
            cause = WaitCause(CauseKind.UNKNOWN, text, "")
        elif lock.cluster != self.workspace.cluster:
            look = f"`sweep why {batch.sweep} --in {lock.cluster}`, with the kubectl context of that cluster"
            text = f"it is merged and runs in cluster {lock.cluster}, which was not read"
            cause = WaitCause(CauseKind.UNKNOWN, text, look)
        else:
            try:
                return BatchExplanation(batch.name, self.in_cluster(batch), ids)
            except ToolError as error:
                text = f"it is merged; the cluster cannot be read: {error}"
                cause = WaitCause(CauseKind.UNKNOWN, text, error.hint or "")
        return BatchExplanation(batch.name, (TrialCauses(cause, tuple(range(lock.trials))),), ids)

    def lost(self, sweep: str) -> dict[str, LostTrial]:
        """Return the trials of a sweep that infrastructure ended and that may be repeated, by id."""
        if self.tip is None:
            return {}
        if sweep not in self._lost:
            self._lost[sweep] = lost_trials_at(self.workspace.repository, self.tip, sweep)
        return self._lost[sweep]

    def _recorded(self, batch: batches.StoredBatch, cause: WaitCause) -> Iterator[TrialCauses]:
        """Yield causes and remedies for the trials of a recorded batch that memory or infrastructure ended."""
        groups: dict[WaitCause, list[int]] = {}
        lost = self.lost(batch.sweep)
        table = catalog.read_summary(self.workspace.root, batch.sweep)
        killed = {row.trial: row for row in (table.rows if table else ()) if row.status is Status.OOM}
        for index, row in enumerate(batch.rows):
            entry, full, known = lost.get(row.trial), killed.get(row.trial), cause
            if full is not None and full.batch == batch.name:
                known = memory_cause(batch.sweep, full)
            elif entry is not None and entry.batch == batch.name:
                known = lost_cause(batch.sweep, entry)
            groups.setdefault(known, []).append(index)
        return (TrialCauses(known, tuple(indexes)) for known, indexes in groups.items())

    def _outside(self, batch: batches.StoredBatch, committed: batches.StoredBatch | None) -> WaitCause:
        """Return the cause for a batch that the controller does not run."""
        workspace, sweep, git = self.workspace, batch.sweep, self.workspace.settings.git
        if not batch.is_active and batch_records.read_records_files(workspace.root, batch):
            way = f"`sweep results {sweep}` shows the results"
            return WaitCause(CauseKind.RECORDED, "its batch is recorded", way)
        if committed is None and not batch.is_active:
            return WaitCause(CauseKind.CANCELLED, f"its batch is archived here, and is not on {self.branch}")
        if committed is None and workspace.repository.remote_url(workspace.remote) is None:
            way = f"`sweep run {sweep}` commits and runs it"
            return WaitCause(CauseKind.NOT_MERGED, "its batch is not committed", way)
        if committed is None:
            done = f"`git fetch {workspace.remote}` if that is done"
            way = f"commit it and merge its pull request into {git.branch}; {done}"
            text = f"its batch is not on {self.branch}, as last fetched"
            return WaitCause(CauseKind.NOT_MERGED, text, way)
        if not committed.is_active and batch.is_active:
            pull = f"`git pull {workspace.remote} {git.branch}`"
            return WaitCause(CauseKind.RECORDED, f"its batch is archived on {self.branch}", pull)
        way = f"`sweep retry {sweep}` requests its trials again once the collector has recorded it"
        return WaitCause(CauseKind.CANCELLED, "its batch was cancelled", way)

    def in_cluster(self, batch: batches.StoredBatch) -> tuple[TrialCauses, ...]:
        """Return the causes for a batch that the controller runs. Raises ToolError."""
        settings, lock = self.workspace.cluster_settings, batch.lock
        indexes = tuple(range(lock.trials))
        if self.kubectl is None:
            return (TrialCauses(self._unobserved(batch), indexes),)
        if isinstance(self.collector, ToolError):
            raise self.collector
        names = Names.of(settings.trials, settings.fleet)
        missing = batch_objects.read_controller_cause(self.kubectl, settings.platform, names, batch.name)
        observed = batch_objects.read_batch_objects(
            self.kubectl, names.trials, lock, missing=missing, now=self.now
        )
        unknown = CollectorState(names.collector, settings.results.every_minutes, is_known=False)
        found = causes.explain_batch(
            *(observed, lock.trials, lock.run.pack),
            collector=self.collector or unknown,
            now=self.now,
            limit=settings.teams.limits.failures,
        )
        return tuple(self._with_way_out(group, batch) for group in found)

    def _with_way_out(self, group: TrialCauses, batch: batches.StoredBatch) -> TrialCauses:
        """Add how to end a batch that only fails, and how to merge results commits that are proposed as branches."""
        cause, sweep, remedy = group.cause, batch.sweep, group.cause.remedy
        is_proposed = self.workspace.settings.results.mode is ResultsMode.BRANCH
        if cause.kind is CauseKind.FAILED:
            ways = (
                f"`sweep cluster pause {sweep}` holds the other trials back, and "
                f"`sweep cancel {sweep} --batch {batch.name}` ends the batch; once it is recorded, "
                f"`sweep retry {sweep} --update` runs its trials with other code"
            )
            remedy = "; ".join(filter(None, (ways, remedy)))
        elif cause.kind is CauseKind.COLLECTOR_DUE and is_proposed:
            remedy = f"merge its branch results/{sweep}/COMMIT of {self.workspace.remote} when it appears"
        return replace(group, cause=replace(cause, remedy=remedy))

    def _unobserved(self, batch: batches.StoredBatch) -> WaitCause:
        """Return the cause for a merged batch if no cluster is read."""
        if self.workspace.settings.platform.controller is Controller.NONE:
            has_remote = self.workspace.repository.remote_url(self.workspace.remote) is not None
            either = " or `sweep cluster local`" if has_remote else ""
            return WaitCause(
                CauseKind.UNKNOWN,
                f"it is merged; {SETTINGS_FILE} names no controller that would run it in a cluster",
                f"`sweep run {batch.sweep}`{either} runs it on a machine; `sweep status` counts its trials",
            )
        return WaitCause(CauseKind.UNKNOWN, "it is merged; the cluster was not read", "")


UNREMARKABLE = frozenset(
    {
        *(CauseKind.RUNNING, CauseKind.STARTING, CauseKind.TURN, CauseKind.RETRYING, CauseKind.COLLECTOR_DUE),
        *(CauseKind.NODE_LOST, CauseKind.STALLED, CauseKind.UNKNOWN, CauseKind.RECORDED),
    }
)
"""Causes without a remark in `sweep status`: nothing needs to be done, or another remark says it."""


def readable_collector(workspace: Workspace, kubectl: Kubectl) -> CollectorState | None:
    """Return the state of the cluster's collector; None if the cluster needs no collector, or cannot be read."""
    read = _read_collector(workspace, kubectl)
    return None if isinstance(read, ToolError) else read


def _read_collector(workspace: Workspace, kubectl: Kubectl | None) -> CollectorState | ToolError | None:
    settings = workspace.settings
    if kubectl is None or settings.platform.controller not in GITOPS:
        return None
    namespace = Names.of(settings.trials, settings.fleet).collector
    try:
        return collector_state.read_collector(kubectl, namespace, settings.results.every_minutes)
    except ToolError as error:
        return None if getattr(error, "reason", "") == "Forbidden" else error


def lost_cause(sweep: str, trial: LostTrial) -> WaitCause:
    """Return the cause for a recorded trial that infrastructure ended."""
    times = "once" if trial.batches == 1 else f"in {trial.batches} batches"
    ended = f"it is recorded: infrastructure ended it {times}, last by {trial.reason}"
    if trial.is_due:
        wait = "the collector requests it again at its next run, unless a budget or a pause is in the way"
        return WaitCause(CauseKind.FAILED, ended, wait)
    return WaitCause(
        CauseKind.FAILED,
        f"{ended}; run.infrastructure.retries was {trial.retries}, so nothing requests it again",
        f"repair what refused it; `sweep retry {sweep}` requests it again",
    )


def memory_cause(sweep: str, row: SummaryRow) -> WaitCause:
    """Return the cause for a recorded trial that used too much memory."""
    return WaitCause(
        CauseKind.FAILED,
        f"it is recorded: {row.status}: {row.error or 'used more memory than run.resources.memory'}",
        f"raise run.resources.memory, then `sweep retry {sweep}` requests it again",
    )
