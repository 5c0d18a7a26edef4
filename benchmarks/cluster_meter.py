"""What a measurement in the box looks at: when Jobs came and ended, what processes used, what is stored."""

import json
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from tests.cluster.apiserver import NoClusterToolsError, kubectl
from tests.cluster.machine import Machine
from tests.e2e.team import NAMESPACE

PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
FLUX = ("source-controller", "kustomize-controller")
ARGOCD = (
    "argocd-redis",
    "argocd-repo-server",
    "argocd-application-controller",
    "argocd-applicationset-controller",
    "argocd-server",
)
GROUPS: Mapping[str, Sequence[str]] = {
    "control plane": PLANE,
    "Flux": FLUX,
    "Argo CD": ARGOCD,
    "kwok": ("kwok",),
}
EVENT = (
    '{.type}{" "}{.object.metadata.name}{" "}{.object.metadata.uid}{" "}'
    '{.object.status.conditions[?(@.status=="True")].type}{"\\n"}'
)


def status_of(main: Callable[[], int]) -> int:
    """Return what a measurement returns; 3, after the reason, where there can be no cluster."""
    try:
        return main()
    except NoClusterToolsError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return 3


@dataclass
class Jobs:
    """The Jobs of the trials' namespace as they come and end, by the clock of whoever watches."""

    machine: Machine
    uids: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    created: dict[str, float] = field(default_factory=dict)
    completed: dict[str, float] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def __enter__(self) -> Self:
        command = [kubectl(), f"--kubeconfig={self.machine.server.kubeconfig}", f"--namespace={NAMESPACE}"]
        command += ["get", "jobs", "--watch", "--output-watch-events", f"--output=jsonpath={EVENT}"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._thread.join()

    def until(self, what: str, seconds: float, *, created: int = 0, completed: int = 0) -> None:
        """Wait until so many Jobs came, and so many are complete. Raises RuntimeError."""
        deadline = time.monotonic() + seconds
        while len(self.created) < created or len(self.completed) < completed:
            if self.failed or time.monotonic() > deadline or self._process.poll() is not None:
                message = (
                    f"{len(self.created)} came, {len(self.completed)} complete, failed: {sorted(self.failed)}"
                )
                raise RuntimeError(f"{what}: not within {seconds:.0f} s: {message}")
            time.sleep(0.05)

    @property
    def made_twice(self) -> int:
        """Count the Jobs that were made more than once."""
        return sum(len(uids) > 1 for uids in self.uids.values())

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            now = time.monotonic()
            _, name, uid, *conditions = line.split()
            self.uids[name].add(uid)
            self.created.setdefault(name, now)
            if "Complete" in conditions:
                self.completed.setdefault(name, now)
            if "Failed" in conditions:
                self.failed.add(name)


@dataclass(frozen=True)
class Usage:
    """What some processes have used."""

    cpu: float
    peak_mebibytes: float
    """The most that each has held at any time, added up."""


class Meter:
    """CPU of groups of processes from now on; their memory from their start."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._before = dict(self._cpu())

    def usage(self) -> dict[str, Usage]:
        """Give what each group that runs has used since this was made."""
        now = dict(self._cpu())
        usages = {}
        for group, names in GROUPS.items():
            running = [name for name in names if name in now]
            if running:
                cpu = sum(now[name] - self._before.get(name, 0) for name in running)
                peak = sum(self._machine.children.peak_bytes(name) for name in running)
                usages[group] = Usage(cpu, peak / 2**20)
        return usages

    def _cpu(self) -> Iterator[tuple[str, float]]:
        for name in (name for names in GROUPS.values() for name in names):
            if self._machine.children.is_alive(name):
                yield name, self._machine.children.cpu_seconds(name)


def objects(machine: Machine) -> Counter[str]:
    """Count what is stored in the trials' namespace, by kind."""
    paths = {kind: f"/api/v1/namespaces/{NAMESPACE}/{kind}" for kind in ("pods", "configmaps", "events")}
    paths["jobs"] = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
    counts: Counter[str] = Counter()
    for kind, path in paths.items():
        listed = json.loads(machine.server.kubectl("get", "--raw", f"{path}?limit=1").stdout)
        counts[kind] = len(listed["items"]) + listed["metadata"].get("remainingItemCount", 0)
    return counts


def requests(machine: Machine) -> int:
    """Count the requests that the API server has answered, watches not."""
    lines = machine.server.kubectl("get", "--raw", "/metrics").stdout.splitlines()
    counted = (line for line in lines if line.startswith("apiserver_request_total{"))
    return sum(int(float(line.rpartition(" ")[2])) for line in counted if 'verb="WATCH"' not in line)
