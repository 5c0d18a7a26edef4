"""The collector's Lease: who is at work, and the last commit that was seen on the branch.

It keeps nobody from writing: git refuses whoever lost a race. It keeps two from doing the same work.
"""

import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from generator.engine.cluster import parts
from generator.engine.cluster.kubectl import ClusterError, Kubectl, Manifest

KIND = "leases.coordination.k8s.io"
NAME = "sweep-collector"
LAST_COMMIT = "sweepledger.dev/last-commit"
SECONDS = 15
"""How long it is held, and waited for: a collector that was killed never gives it back."""
PAUSE_SECONDS = 1.0
COMMIT = re.compile(r"[0-9a-f]{40,64}")


@dataclass
class Lease:
    """The one of a namespace, for who calls himself `holder`: a pod, or a person's machine."""

    kubectl: Kubectl
    namespace: str
    holder: str = field(default_factory=socket.gethostname)
    held: Manifest | None = None

    @property
    def last_commit(self) -> str | None:
        """The commit that the last collector saw; None where none is known."""
        notes = (self.held or {}).get("metadata", {}).get("annotations") or {}
        said = str(notes.get(LAST_COMMIT, ""))
        return said if COMMIT.fullmatch(said) else None

    def take(
        self, *, clock: Callable[[], float] = time.time, pause: Callable[[float], None] = time.sleep
    ) -> str | None:
        """Take it, once nobody else holds it or its time has gone; say why not where it cannot be taken."""
        until = clock() + SECONDS
        while True:
            try:
                found = self.kubectl.get(KIND, NAME, self.namespace)
                if found is None:
                    return f"there is no Lease {self.namespace}/{NAME}"
                if _is_held(found, clock()) and clock() < until:
                    pause(PAUSE_SECONDS)
                    continue
                self.held = self.kubectl.replace(_with(found, self._spec(clock())))
            except ClusterError as error:
                if error.reason != "Conflict" or clock() >= until:
                    return str(error)
            else:
                return None

    def give_back(self, seen: str | None) -> None:
        """Let others have it, and let them know of the last commit; who took it meanwhile keeps it."""
        if self.held is None:
            return
        notes = dict(self.held["metadata"].get("annotations") or {})
        changed = _with(self.held, {}, notes | ({LAST_COMMIT: seen} if seen else {}))
        try:
            self.kubectl.replace(changed)
        except ClusterError:
            return  # it ends by itself, and the next one knows of an older commit

    def _spec(self, now: float) -> dict[str, Any]:
        moment = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": SECONDS,
            "acquireTime": moment,
            "renewTime": moment,
        }


def _with(found: Manifest, spec: dict[str, Any], notes: dict[str, str] | None = None) -> dict[str, Any]:
    """Change an object as it was read: its version lets the server refuse it when another was faster."""
    metadata = {name: one for name, one in found["metadata"].items() if name != "managedFields"}
    return {**found, "metadata": metadata | ({} if notes is None else {"annotations": notes}), "spec": spec}


def _is_held(found: Manifest, now: float) -> bool:
    spec = found.get("spec") or {}
    renewed = parts.moment(spec, "renewTime")
    # A clock that is ahead of this one's holds it no longer than its time.
    return bool(spec.get("holderIdentity")) and renewed is not None and abs(now - renewed) < SECONDS
