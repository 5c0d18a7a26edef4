"""The state of the collector in a cluster: its last success, the cause of failures, and its Lease."""

import re
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.engine.cluster.pods import waiting_reason
from sweepledger.formats.manifest_fields import (
    condition,
    has_condition,
    int_at,
    objects_at,
    text_at,
    time_at,
    value_at,
)
from sweepledger.formats.record_json import format_time
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT, COMPONENT_LABEL, DOMAIN, Manifest

MISSED_RUNS = 3
"""Runs without success after which the collector counts as failing, as in the alert."""
RESUME = '--type=merge --patch \'{"spec":{"suspend":false}}\''
"""Options of `kubectl patch` that end a suspension."""
MINUTE = 60


@dataclass(frozen=True, slots=True)
class CollectorState:
    """The collector's state as its cluster reports it."""

    namespace: str
    every_minutes: int
    is_known: bool = True
    """Whether the cluster could be asked, and has a collector that it runs by itself."""
    exists: bool = True
    is_suspended: bool = False
    created: float | None = None
    last_success: float | None = None
    failure: str = ""
    """Why the newest run that ended failed; empty if it succeeded."""
    obstacle: str = ""
    """Why the pod of the current run does not start."""

    def is_late(self, now: float) -> bool:
        """Return whether several runs are missing."""
        since = self.last_success or self.created
        return since is not None and now - since > MISSED_RUNS * self.every_minutes * MINUTE

    def trouble(self, now: float) -> tuple[str, str] | None:
        """Return why the collector does not succeed, and what to do; None if no cause is known."""
        kubectl = f"kubectl --namespace {self.namespace}"
        if not self.is_known:
            return None
        if not self.exists:
            remedy = (
                "apply the files of the platform as clusters/README.md says; "
                "`sweep cluster collect --by-pod --push` records now"
            )
            return f"the cluster has no CronJob {self.namespace}/{COLLECTOR_ACCOUNT}", remedy
        if self.is_suspended:
            remedy = (
                "`sweep cluster pin collector` sets its image, then `sweep cluster bootstrap`; if a person suspended "
                f"it: `{kubectl} patch cronjob {COLLECTOR_ACCOUNT} {RESUME}`"
            )
            return "the collector is suspended", remedy
        if self.obstacle:
            text = f"the collector's pod does not start: {self.obstacle}"
            remedy = f"`{kubectl} describe pods` says more"
        elif self.failure:
            logs = f"{kubectl} logs --selector={COMPONENT_LABEL}={COLLECTOR_ACCOUNT} --all-containers"
            text, remedy = f"the collector failed: {self.failure}", f"`{logs}` shows its output"
        elif self.is_late(now):
            text = f"the collector has not succeeded for {MISSED_RUNS} runs"
            remedy = f"`{kubectl} describe cronjob {COLLECTOR_ACCOUNT}` lists its events"
        else:
            return None
        return f"{text}{self.success_text(now)}", remedy

    def as_data(self, now: float) -> dict[str, str | None]:
        """Return the JSON data."""
        message, hint = self.trouble(now) or (None, None)
        success = None if self.last_success is None else format_time(self.last_success)
        return {"last_success": success, "message": message, "hint": hint}

    def success_text(self, now: float) -> str:
        """Return when the collector last succeeded, as the end of a sentence."""
        if self.last_success is None:
            return ", and has not succeeded yet"
        minutes = max(0, int((now - self.last_success) // MINUTE))
        return f", and last succeeded {minutes} min ago"


def parse_collector(
    cron_job: Manifest | None,
    jobs: Sequence[Manifest],
    pods: Sequence[Manifest],
    *,
    namespace: str,
    every_minutes: int,
) -> CollectorState:
    """Return the state of a collector from its CronJob, its Jobs and their pods."""
    if cron_job is None:
        return CollectorState(namespace, every_minutes, exists=False)
    ended = [job for job in jobs if _end(job) is not None]
    newest = max(ended, key=lambda job: _end(job) or 0.0, default=None)
    waiting = (waiting_reason(pod) for pod in pods if text_at(pod, "status", "phase") == "Pending")
    successes = [end for job in jobs if has_condition(job, "Complete") and (end := _end(job)) is not None]
    reported = time_at(cron_job, "status", "lastSuccessfulTime")
    return CollectorState(
        namespace,
        every_minutes,
        is_suspended=value_at(cron_job, "spec", "suspend") is True,
        created=time_at(cron_job, "metadata", "creationTimestamp"),
        last_success=max((*successes, *([reported] if reported else ())), default=None),
        failure=_failure(newest, pods),
        obstacle=next((reason[1] for reason in waiting if reason is not None), ""),
    )


def read_collector(kubectl: Kubectl, namespace: str, every_minutes: int) -> CollectorState:
    """Return the state of the collector in a cluster. Raises ClusterError."""
    cron_job = kubectl.get("cronjobs.batch", COLLECTOR_ACCOUNT, namespace)
    selector = f"{COMPONENT_LABEL}={COLLECTOR_ACCOUNT}"
    jobs = [] if cron_job is None else kubectl.list("jobs.batch", namespace, selector)
    pods = [] if cron_job is None else kubectl.list("pods", namespace, selector)
    return parse_collector(cron_job, jobs, pods, namespace=namespace, every_minutes=every_minutes)


def _end(job: Manifest) -> float | None:
    for name in ("Complete", "Failed"):
        if has_condition(job, name):
            return time_at(condition(job, name), "lastTransitionTime")
    return None


def _failure(job: Manifest | None, pods: Sequence[Manifest]) -> str:
    """Return why a Job failed: the last line that its pod printed, else the message of its condition."""
    if job is None or not has_condition(job, "Failed"):
        return ""
    uid = text_at(job, "metadata", "uid")
    for pod in pods:
        owners = objects_at(pod, "metadata", "ownerReferences")
        if not any(text_at(owner, "uid") == uid for owner in owners):
            continue
        names = ("initContainerStatuses", "containerStatuses")
        for status in (status for name in names for status in objects_at(pod, "status", name)):
            end = value_at(status, "state", "terminated")
            if code := int_at(end, "exitCode"):
                lines = [line.strip() for line in text_at(end, "message").splitlines() if line.strip()]
                words = lines[-1] if lines else f"{text_at(end, 'reason')}, exit code {code}"
                return f"container {text_at(status, 'name')}: {words}"
    failed = condition(job, "Failed")
    return text_at(failed, "message") or text_at(failed, "reason") or "its Job failed"


LEASE_KIND = "leases.coordination.k8s.io"
LEASE_NAME = COLLECTOR_ACCOUNT
LAST_COMMIT = f"{DOMAIN}/last-commit"
LEASE_SECONDS = 15
"""Duration of the lease, and of the wait for it: a killed collector does not release it."""
PAUSE_SECONDS = 1.0
COMMIT = re.compile(r"[0-9a-f]{40,64}")


@dataclass
class Lease:
    """The lease of a namespace, for the holder `holder`: a pod, or the user's machine.

    It names the running collector and the last commit that a collector has seen on the branch. It avoids duplicate
    work. It does not protect git: a push that loses a race is refused there.
    """

    kubectl: Kubectl
    namespace: str
    holder: str = field(default_factory=socket.gethostname)
    held: Manifest | None = None

    @property
    def last_commit(self) -> str | None:
        """The commit that the last collector saw; None if it is unknown."""
        annotations = (self.held or {}).get("metadata", {}).get("annotations") or {}
        commit = str(annotations.get(LAST_COMMIT, ""))
        return commit if COMMIT.fullmatch(commit) else None

    def acquire(
        self, *, clock: Callable[[], float] = time.time, pause: Callable[[float], None] = time.sleep
    ) -> str | None:
        """Wait until the lease is free or expired, and acquire it; return an error text, or None."""
        deadline = clock() + LEASE_SECONDS
        while True:
            try:
                lease = self.kubectl.get(LEASE_KIND, LEASE_NAME, self.namespace)
                if lease is None:
                    return f"the Lease {self.namespace}/{LEASE_NAME} does not exist"
                now, spec = clock(), lease.get("spec") or {}
                renewed = time_at(spec, "renewTime")
                # `abs`, so that a holder whose clock is ahead does not keep the lease beyond its duration.
                is_fresh = renewed is not None and abs(now - renewed) < LEASE_SECONDS
                if spec.get("holderIdentity") and is_fresh and now < deadline:
                    pause(PAUSE_SECONDS)
                    continue
                moment = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                spec = {
                    "holderIdentity": self.holder,
                    "leaseDurationSeconds": LEASE_SECONDS,
                    "acquireTime": moment,
                    "renewTime": moment,
                }
                self.held = self.kubectl.replace(_changed(lease, spec))
            except ClusterError as error:
                if error.reason != "Conflict" or clock() >= deadline:
                    return str(error)
            else:
                return None

    def release(self, last_commit: str | None) -> None:
        """Release the lease and store the last commit; a lease that another collector has acquired stays."""
        if self.held is None:
            return
        annotations = dict(self.held["metadata"].get("annotations") or {})
        if last_commit:
            annotations[LAST_COMMIT] = last_commit
        changed = _changed(self.held, {}, annotations)
        try:
            self.kubectl.replace(changed)
        except ClusterError:
            return  # the lease expires, and the next collector starts from an older commit


def _changed(
    lease: Manifest, spec: dict[str, Any], annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return a changed object with its resourceVersion, so that the server refuses it if it is outdated."""
    metadata = {name: value for name, value in lease["metadata"].items() if name != "managedFields"}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {**lease, "metadata": metadata, "spec": spec}
