"""Why trials of a batch do not run, from the objects of a cluster. Pure: `batch_objects.py` reads the objects."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from functools import partial

from sweepledger.controllers.controller import Sync, SyncState
from sweepledger.engine.cluster.collector_state import RESUME, CollectorState
from sweepledger.engine.cluster.pods import PodPhase, TrialPod, waiting_reason
from sweepledger.engine.cluster.workloads import Workload
from sweepledger.formats.manifest_fields import condition, int_at, objects_at, text_at, value_at
from sweepledger.formats.pack_digest import parse_indexes
from sweepledger.problems import escape_line
from sweepledger.structs.kubernetes import BAD_HYPERPARAMETERS, QUEUE_LABEL, SWEEP_LABEL, Manifest
from sweepledger.structs.quantities import parse_quantity
from sweepledger.structs.run_config import Pack

TRIALS_QUOTA = "sweep-trials"
"""The ResourceQuota of the trials' namespace, which `sweep cluster bootstrap` computes from the pools."""

MAX_MESSAGE = 400
"""Characters of a message from the cluster: refusals repeat the whole object."""


class CauseKind(StrEnum):
    """What a trial waits for, or how it ended; stable names for programs."""

    SPEC_INVALID = "spec-invalid"
    NOT_GENERATED = "not-generated"
    NOT_MERGED = "not-merged"
    NOT_SYNCED = "not-synced"
    """The controller has not applied the batch."""
    REFUSED = "refused"
    """The API server, or an admission policy, refuses an object of the batch."""
    QUOTA = "quota"
    SUSPENDED = "suspended"
    """A queue or a person holds it back."""
    UNSCHEDULABLE = "unschedulable"
    IMAGE = "image"
    VOLUME = "volume"
    """A volume, Secret or ConfigMap cannot be mounted."""
    STARTING = "starting"
    TURN = "turn"
    """The batch runs as many trials as `run.parallelism` allows."""
    RUNNING = "running"
    RETRYING = "retrying"
    NODE_LOST = "node-lost"
    STALLED = "stalled"
    """Its objects were applied and are gone."""
    COLLECTOR_DUE = "collector-due"
    """It has ended, and the collector records it next time."""
    COLLECTOR_FAILING = "collector-failing"
    """It has ended, but the collector does not succeed."""
    CANCELLED = "cancelled"
    RECORDED = "recorded"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """It is merged; what the cluster does with it was not read."""


@dataclass(frozen=True, slots=True)
class WaitCause:
    """A cause that some trials share."""

    kind: CauseKind
    text: str
    """What is observed, with the message of the cluster where there is one."""
    remedy: str = ""
    """What to do; empty if nothing needs to be done."""


@dataclass(frozen=True, slots=True)
class TrialCauses:
    """A cause, and the trials of a batch to which it applies."""

    cause: WaitCause
    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BatchObjects:
    """The objects of one batch in a cluster."""

    missing: WaitCause
    """Why the batch has no objects, or fewer than it needs, by the report of its controller."""
    workloads: Sequence[tuple[Workload, Manifest]] = ()
    pods: Sequence[TrialPod] = ()
    """Pods that have not succeeded."""
    creation_failures: Mapping[str, str] = field(default_factory=dict)
    """Newest message about a pod or Job that could not be created, by name of the workload."""
    mount_failures: Mapping[str, str] = field(default_factory=dict)
    """Newest message about a volume, by uid of the pod."""
    queue_entries: Mapping[str, Manifest] = field(default_factory=dict)
    """Kueue's Workload of each object, by the object's uid."""


REFUSAL = re.compile(
    r"denied (?:the )?request|violates PodSecurity|admission webhook|is invalid: |is forbidden: |failed quota"
)
QUOTA = re.compile(r"(?:exceeded|failed|status unknown for) quota")


_suspended = partial(WaitCause, CauseKind.SUSPENDED)


def message_kind(message: str) -> CauseKind:
    """Return the kind of cause in a message about an object that could not be created."""
    if QUOTA.search(message):
        return CauseKind.QUOTA
    return CauseKind.REFUSED if REFUSAL.search(message) else CauseKind.NOT_SYNCED


def shorten(message: str) -> str:
    """Return a message of the cluster on one line, shortened for a terminal."""
    line = escape_line(" ".join(message.split()))
    return line if len(line) <= MAX_MESSAGE else f"{line[:MAX_MESSAGE]}…"


POD_NAME = re.compile(r'\bpods "[^"]*"')
"""Trials that are refused alike share a cause, whatever the names of their pods."""
OF_QUOTA = re.compile(QUOTA.pattern + r": ([a-z0-9.-]+)")
AMOUNTS = re.compile(r"(requested|limited): ((?:[^\s,=]+=[^\s,]+,?)+)")
LIMIT_RANGE = re.compile(r"(?:maximum|minimum) \S+ usage per |max limit to request ratio per ")
WEBHOOK = re.compile(r'admission webhook "([^"]+)"')


def creation_remedy(message: str) -> str:
    """Return the remedy for an object that the API server refuses, by the rule in the server's message."""
    if QUOTA.search(message):
        named = OF_QUOTA.search(message)
        named_quota = f"ResourceQuota {TRIALS_QUOTA if named is None else named[1]}"
        raised = f"raise {named_quota}"
        if named is None or named[1] == TRIALS_QUOTA:
            raised = "raise `max_nodes` of the pool, and run `sweep cluster bootstrap`"
        if "must specify" in message:
            return f"trials do not specify all that the quota limits: ask the platform team to change {named_quota}"
        amounts: dict[str, dict[str, Decimal]] = {}
        for key, text in AMOUNTS.findall(message):
            amounts[key] = {}
            for pair in text.strip(",").split(","):
                name, _, amount = pair.partition("=")
                with suppress(ValueError):
                    amounts[key][name] = parse_quantity(amount)
        limits = amounts.get("limited", {})
        if any(
            amount > limits[name] for name, amount in amounts.get("requested", {}).items() if name in limits
        ):
            return (
                "one pod requests more than the whole quota: lower `run.resources`, or have the platform team "
                f"{raised}"
            )
        return f"it starts when other trials end; else ask the platform team to {raised}"
    changed = "`sweep cancel` the batch with --replace, and merge"
    if LIMIT_RANGE.search(message):
        return (
            f"a LimitRange of the namespace bounds each pod: change `run.resources`, {changed}; or ask the platform "
            "team, which sees it by `kubectl get limitrange`"
        )
    if webhook := WEBHOOK.search(message):
        return f"webhook {webhook[1]} is none of sweepledger: change what it names, {changed}; or ask the platform team"
    return (
        f"the message names the rule: change the spec or the settings, {changed}; `sweep cluster doctor` compares the "
        "platform with the repository"
    )


REMEDIES = (
    (
        CauseKind.IMAGE,
        r"(?i)unauthorized|denied|no basic auth|forbidden|authentication",
        "check the Secret that `image_pull_secret` names; `sweep cluster doctor` says whether it exists",
    ),
    (
        CauseKind.IMAGE,
        r"(?i)not found|manifest unknown|does not exist",
        (
            "push the image again, or pin another with `sweep cluster pin` and `sweep generate --update`, and cancel "
            "this batch"
        ),
    ),
    (
        CauseKind.IMAGE,
        "",
        "check that the nodes reach the registry: `kubectl describe pod NAME` lists the attempts",
    ),
    (
        CauseKind.UNSCHEDULABLE,
        r"didn't match [Pp]od's node affinity|node\(s\) had untolerated taint",
        "no node has the labels and taints that `pools` of sweepledger.yaml expects: compare the two",
    ),
    (
        CauseKind.UNSCHEDULABLE,
        "",
        (
            "wait for nodes, or `sweep cancel` the batch with --replace and lower `run.resources` or choose another "
            "`run.pool`"
        ),
    ),
    (CauseKind.VOLUME, "", "`sweep cluster doctor` says which claims and Secrets are missing"),
    (
        CauseKind.NODE_LOST,
        "",
        (
            "it continues when the node returns; if the node is gone, `kubectl delete node NAME`, and the trial is "
            "tried again"
        ),
    ),
    (CauseKind.STARTING, "", "`kubectl describe pod` says more"),
)
"""What to do about a pod that does not run, by kind and message: the first row that fits."""


@dataclass(frozen=True)
class _Explainer:
    objects: BatchObjects
    trials: int
    pack: Pack | None
    collector: CollectorState
    now: float
    limit: int
    """Failed trials without any success from which on the batch itself is in doubt; 0: never."""
    alive: dict[int, TrialPod] = field(default_factory=dict)
    """The pod that counts, for trials with pods that have not ended."""
    failures: dict[int, TrialPod] = field(default_factory=dict)
    """The last failed pod, for trials with failed pods."""

    def __post_init__(self) -> None:
        for pod in sorted(self.objects.pods, key=lambda pod: (pod.created, pod.uid)):
            phase, other = pod.phase(self.now), self.alive.get(pod.index)
            if phase.is_over:
                self.failures[pod.index] = pod
            elif other is None or POD_RANKS[phase] <= POD_RANKS[other.phase(self.now)]:
                self.alive[pod.index] = pod

    def causes(self) -> Iterator[tuple[int, WaitCause]]:
        """Yield the cause for each trial."""
        ended = {
            index
            for workload, _ in self.objects.workloads
            for index in workload.ended(self.trials, self.pack)
        }
        shared = next((pair for pair in self.objects.workloads if pair[0].index is None), None)
        own = {pair[0].index: pair for pair in self.objects.workloads if pair[0].index is not None}
        failed, held = _held_quota(shared, self.trials, self.pack)
        doubtful = self._without_success()
        for index in range(self.trials):
            workload = own.get(index, shared)
            if index in ended:
                cause = self._ended(doubtful if index in doubtful else frozenset())
                yield index, replace(cause, text=cause.text + held) if index in failed else cause
            elif index in self.alive:
                yield index, self._with_pod(self.alive[index])
            elif workload is None:
                yield index, self.objects.missing
            else:
                yield index, self._without_pod(index, *workload)

    def _without_success(self) -> frozenset[int]:
        """Return the failed trials if there are many and none is ok; for a pack, only records show this."""
        workloads = [workload for workload, _ in self.objects.workloads]
        if (
            self.pack is not None
            or not self.limit
            or any(any(each.succeeded(self.trials)) for each in workloads)
        ):
            return frozenset()
        failed = frozenset(
            index
            for each in workloads
            for index in each.gave_up(self.trials)
            if index not in self.failures
            or int_at(self.failures[index].status, "state", "terminated", "exitCode") != BAD_HYPERPARAMETERS
        )
        return failed if len(failed) >= self.limit else frozenset()

    def _ended(self, failed: frozenset[int]) -> WaitCause:
        """Return the cause for a trial that has ended; `failed` has the trials whose number puts the batch in doubt."""
        trouble = self.collector.trouble(self.now)
        why, remedy = ("", "") if trouble is None else (shorten(trouble[0]), trouble[1])
        if failed:
            text = f"{len(failed)} trials of the batch failed and none is ok{self._last_end(max(failed))}"
            return WaitCause(
                CauseKind.FAILED, text + (f"; they are not recorded: {why}" if why else ""), remedy
            )
        if trouble:
            return WaitCause(CauseKind.COLLECTOR_FAILING, f"it has ended, and is not recorded: {why}", remedy)
        text = f"it has ended; the collector runs every {self.collector.every_minutes} minutes"
        return WaitCause(CauseKind.COLLECTOR_DUE, text + self.collector.success_text(self.now))

    def _with_pod(self, pod: TrialPod) -> WaitCause:
        match pod.phase(self.now):
            case PodPhase.LOST:
                kind, message = CauseKind.NODE_LOST, f"its pod is on {pod.node}, which does not respond"
            case PodPhase.RUNNING if pod.failures:
                text = f"attempt {pod.failures + 1} runs{self._last_end(pod.index)}"
                return WaitCause(CauseKind.RETRYING, text)
            case PodPhase.RUNNING:
                return WaitCause(CauseKind.RUNNING, "it runs")
            case _:
                waiting = waiting_reason(pod.manifest, self.objects.mount_failures.get(pod.pod_uid, ""))
                if waiting is None:
                    return WaitCause(CauseKind.STARTING, "its pod was created and starts")
                kind, message = CauseKind(waiting[0]), shorten(waiting[1])
        rows = (row for row in REMEDIES if row[0] is kind and re.search(row[1], message))
        return WaitCause(kind, message, next(rows)[2])

    def _without_pod(self, index: int, workload: Workload, manifest: Manifest) -> WaitCause:
        if workload.is_suspended:
            return queue_cause(manifest, self.objects.queue_entries.get(text_at(manifest, "metadata", "uid")))
        name = text_at(manifest, "metadata", "name")
        parallelism = int_at(manifest, "spec", "parallelism")
        pods = len({pod.pod_uid for pod in self.alive.values()})
        is_full = workload.index is None and parallelism is not None and pods >= max(parallelism, 1)
        failure = self.objects.creation_failures.get(name)
        if failure and not is_full:
            kind = message_kind(failure)
            kind = CauseKind.REFUSED if kind is CauseKind.NOT_SYNCED else kind
            return WaitCause(kind, shorten(POD_NAME.sub("its pod", failure)), creation_remedy(failure))
        if index in self.failures:
            text = f"the next attempt follows after a pause{self._last_end(index)}"
            return WaitCause(CauseKind.RETRYING, text)
        if is_full:
            return WaitCause(
                CauseKind.TURN,
                f"{len(self.alive)} trial(s) of the batch are under way, which is its parallelism",
                "raise `run.parallelism` for the next batch",
            )
        return WaitCause(CauseKind.STARTING, f"{manifest.get('kind', 'Job')} {name} exists; its pod follows")

    def _last_end(self, index: int) -> str:
        pod = self.failures.get(index)
        if pod is None:
            return ""
        ended = value_at(pod.status, "state", "terminated")
        reason = text_at(ended, "reason") or text_at(pod.manifest, "status", "reason")
        code = int_at(ended, "exitCode")
        parts = [part for part in (reason, None if code is None else f"exit code {code}") if part]
        return f"; the last one failed: {shorten(', '.join(parts))}" if parts else ""


def _held_quota(
    shared: tuple[Workload, Manifest] | None, trials: int, pack: Pack | None
) -> tuple[frozenset[int], str]:
    """Return the failed trials of a running Indexed Job, and the queue quota that they still occupy.

    Kueue counts every pod that has not succeeded, up to the parallelism; a failed index has no further pod.
    """
    workload, job = shared or (None, {})
    queue = text_at(job, "metadata", "labels", QUEUE_LABEL)
    if workload is None or workload.has_ended or workload.is_suspended or not queue:
        return frozenset(), ""
    pods = (pack or Pack(1)).pods(trials)
    failed = len({*parse_indexes(workload.failed, pods)})
    remaining = pods - len({*parse_indexes(workload.completed, pods)})
    parallelism = int_at(job, "spec", "parallelism") or 1
    held = min(parallelism, remaining) - min(parallelism, remaining - failed)
    if held <= 0:
        return frozenset(), ""
    rows = frozenset(workload.ended(trials, pack)) - frozenset(workload.succeeded(trials, pack))
    return rows, (
        f"; until the batch ends, failed trials keep the quota of {held} pod(s) in queue {queue}, as Kueue takes back "
        "only that of trials that succeeded"
    )


POD_RANKS = {phase: rank for rank, phase in enumerate((PodPhase.RUNNING, PodPhase.LOST, PodPhase.WAITING))}
"""The pod with the lowest rank counts if a trial has several."""


def explain_batch(
    objects: BatchObjects,
    trials: int,
    pack: Pack | None = None,
    *,
    collector: CollectorState,
    now: float,
    limit: int = 0,
) -> tuple[TrialCauses, ...]:
    """Return the causes for all trials of a batch, each with its trials, in the order of the first trial.

    If at least `limit` trials failed and none succeeded, the failures are the cause; 0: never.
    """
    grouped: dict[WaitCause, list[int]] = {}
    for index, cause in _Explainer(objects, trials, pack, collector, now, limit).causes():
        grouped.setdefault(cause, []).append(index)
    return tuple(TrialCauses(cause, tuple(indexes)) for cause, indexes in grouped.items())


def queue_cause(manifest: Manifest, entry: Manifest | None) -> WaitCause:
    """Return why an object is suspended, given Kueue's Workload for it."""
    name, namespace = (text_at(manifest, "metadata", key) for key in ("name", "namespace"))
    queue = text_at(manifest, "metadata", "labels", QUEUE_LABEL)
    if not queue:
        remedy = f"`kubectl --namespace {namespace} patch job {name} {RESUME}`"
        if sweep := text_at(manifest, "metadata", "labels", SWEEP_LABEL):
            remedy = f"`sweep cluster resume {sweep}` if its spec pauses it; else {remedy}"
        return _suspended("its Job is suspended, and no queue holds it", remedy)
    if entry is None:
        return _suspended(
            f"it waits in queue {queue}, about which Kueue reports nothing",
            "`sweep cluster doctor` says whether the queue exists, and whether the cluster has Kueue",
        )
    # The admission checks of a Workload that are not ready, with what their controllers say.
    checks = "; ".join(
        f"admission check {text_at(check, 'name')} is {text_at(check, 'state')}"
        + (f": {text_at(check, 'message')}" if text_at(check, "message") else "")
        for check in objects_at(entry, "status", "admissionChecks")
        if text_at(check, "state") != "Ready"
    )
    if value_at(entry, "spec", "active") is False:
        workload = text_at(entry, "metadata", "name")
        said = filter(None, (text_at(condition(entry, "Evicted"), "message"), checks))
        return _suspended(
            f"queue {queue} has given it up: {shorten('; '.join(said) or 'its Workload is not active')}",
            # Kueue 0.15 does not queue a Workload again that is activated after an admission check rejected it.
            f"`kubectl --namespace {namespace} delete workload {workload}` lets it wait again, as Kueue creates it "
            "anew; or `sweep cancel` the batch",
        )
    if checks and condition(entry, "QuotaReserved").get("status") == "True":
        return _suspended(
            f"it waits in queue {queue}, with its quota reserved: {shorten(checks)}",
            f"it starts when the check is Ready; `kubectl --namespace {namespace} get provisioningrequests` shows what "
            "the autoscaler says",
        )
    for type_, wanted in (("Evicted", "True"), ("QuotaReserved", "False"), ("Admitted", "False")):
        message = text_at(condition(entry, type_), "message")
        if condition(entry, type_).get("status") == wanted and message:
            return _suspended(
                f"it waits in queue {queue}: {shorten(message)}",
                f"it starts when the queue has room; `kubectl --namespace {namespace} describe localqueue {queue}` "
                "shows the use",
            )
    why = f": {shorten(checks)}" if checks else ""
    return _suspended(f"it waits in queue {queue}{why}", "it starts when the queue admits it")


def sync_cause(sync: Sync) -> WaitCause:
    """Return why a controller has not applied a batch; STALLED if it has applied it and the objects are gone."""
    text = f"{sync.text}: {shorten(sync.message)}" if sync.message else sync.text
    if sync.state is SyncState.APPLIED:
        return WaitCause(CauseKind.STALLED, text, sync.remedy)
    kind = message_kind(sync.message) if sync.state is SyncState.REFUSED else CauseKind.NOT_SYNCED
    return WaitCause(
        kind, text, sync.remedy if kind is CauseKind.NOT_SYNCED else creation_remedy(sync.message)
    )
