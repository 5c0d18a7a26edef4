"""The collector's Lease: which collector is running, and the last commit that a collector has seen on the branch.

It avoids duplicate work. It does not protect git: a push that loses a race is refused there.
"""

import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sweepledger.engine.cluster import api_objects
from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT, Manifest

LEASE_KIND = "leases.coordination.k8s.io"
LEASE_NAME = COLLECTOR_ACCOUNT
LAST_COMMIT = "sweepledger.dev/last-commit"
LEASE_SECONDS = 15
"""Duration of the lease, and of the wait for it: a killed collector does not release it."""
PAUSE_SECONDS = 1.0
COMMIT = re.compile(r"[0-9a-f]{40,64}")


@dataclass
class Lease:
    """The lease of a namespace, for the holder `holder`: a pod, or the user's machine."""

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
                if _is_held(lease, clock()) and clock() < deadline:
                    pause(PAUSE_SECONDS)
                    continue
                self.held = self.kubectl.replace(_changed(lease, self._spec(clock())))
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

    def _spec(self, now: float) -> dict[str, Any]:
        moment = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": moment,
            "renewTime": moment,
        }


def _changed(
    lease: Manifest, spec: dict[str, Any], annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return a changed object with its resourceVersion, so that the server refuses it if it is outdated."""
    metadata = {name: value for name, value in lease["metadata"].items() if name != "managedFields"}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {**lease, "metadata": metadata, "spec": spec}


def _is_held(lease: Manifest, now: float) -> bool:
    spec = lease.get("spec") or {}
    renewed = api_objects.time_at(spec, "renewTime")
    # `abs`, so that a holder whose clock is ahead does not keep the lease beyond its duration.
    return bool(spec.get("holderIdentity")) and renewed is not None and abs(now - renewed) < LEASE_SECONDS
