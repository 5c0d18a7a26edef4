"""Runs of the collector in the cluster, as a test sees them: started, watched by their processes, killed.

Containers run in the box's own namespaces, so that their processes are seen and killed as any other.
"""

import ctypes
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster import box
from tests.cluster.children import until
from tests.e2e.team import COLLECTORS, NAMESPACE, Team

RUN_SECONDS = 240.0
"""For a pod that is made, pulls nothing and works for some seconds, on a machine full of others."""
STEP_SECONDS = 300.0
CRON_JOB = ("cronjobs.batch", "sweep-collector", COLLECTORS)
KEPT = {"successfulJobsHistoryLimit": 20, "failedJobsHistoryLimit": 20}
"""The Jobs that a test starts count as the CronJob's: else it deletes them while the test looks at them."""
PLATFORM = ("applications.argoproj.io", f"{NAMESPACE}-platform", "argocd")
"""The Application that would put the CronJob back to what git says."""
HOLDER = "/pause"
"""The process that holds a pod's namespaces: the pod's, not a container's."""

Argv = tuple[str, ...]


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    code: int
    """Of its last container that ran."""
    reason: str
    """The API's word for how that ended."""
    message: str
    """What the API keeps of it: where it failed, the last lines that it printed."""
    log: str


@dataclass(frozen=True)
class Run:
    """A Job that was made from the CronJob."""

    team: Team
    job: str
    pod: str
    uid: str
    """Of the pod; names its cgroup."""

    @classmethod
    def start(cls, team: Team) -> "Run":
        """Run the collector now, and wait until it has a pod."""
        job = team.collect()
        until(f"{job} has a pod", lambda: _pods(team, job), seconds=STEP_SECONDS, pause=0.1)
        made = _pods(team, job)[0]["metadata"]
        return cls(team, job, made["name"], made["uid"])

    def processes(self) -> dict[int, Argv]:
        results = {}
        for group in _cgroups(self.uid):
            with suppress(OSError):  # it has ended
                for pid in (group / "cgroup.procs").read_text().split():
                    argv = (Path("/proc") / pid / "cmdline").read_text().split("\0")[:-1]
                    if argv[:1] not in ([], [HOLDER]):
                        results[int(pid)] = tuple(argv)
        return results

    def until_it(self, what: str, step: Callable[[Sequence[Argv]], bool]) -> None:
        """Wait until its processes show that it takes a step. Raises AssertionError where it ended before."""
        deadline = time.monotonic() + STEP_SECONDS
        count = 0
        while not step(tuple(self.processes().values())):
            count += 1
            assert count % 100 or not self.is_over, f"it ended before it {what}: {self.ended()}"
            assert time.monotonic() < deadline, f"not within {STEP_SECONDS:.0f} s: {self.job} {what}"
            time.sleep(0.01)  # some steps are over as soon

    def kill(self) -> None:
        """Kill what runs in it, as the kernel would, and wait until nothing does."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(f"{self.job} is dead", lambda: not self.processes(), seconds=STEP_SECONDS)

    @property
    def is_over(self) -> bool:
        """Tell whether its pod has ended; its Job says so some seconds later."""
        return self._status["phase"] in {"Succeeded", "Failed"}

    def ended(self, *, seconds: float = RUN_SECONDS) -> Ended:
        until(f"{self.job} ends", lambda: self.is_over, seconds=seconds, pause=0.5)
        status = self._status
        ran = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
        last = [item["state"]["terminated"] for item in ran if "terminated" in item["state"]][-1]
        return Ended(last["exitCode"], last.get("reason", ""), last.get("message", ""), self.log())

    @property
    def _status(self) -> dict[str, Any]:
        document = self.team.get("pod", self.pod, COLLECTORS)
        assert document is not None, f"{self.pod} is gone"
        status: dict[str, Any] = document["status"]
        return status

    def log(self) -> str:
        logs = ("logs", self.pod, f"--namespace={COLLECTORS}", "--all-containers")
        return self.team.server.kubectl(*logs, check=False).stdout


def is_cloning(running: Sequence[Argv]) -> bool:
    return any("clone" in argv for argv in running)


def is_asking_the_cluster(running: Sequence[Argv]) -> bool:
    """Tell whether it looks at Jobs or pods."""
    return any(argv[0].endswith("kubectl") for argv in running)


def is_pushing(running: Sequence[Argv]) -> bool:
    return any("push" in argv for argv in running)


class Reading:
    """Tells whether anybody has opened a file, also by another mount, since this was made."""

    OPENED = 0x20
    """The kernel's number for it; Python knows nothing of inotify."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._events = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        watched = library.inotify_add_watch(self._events, os.fsencode(path), self.OPENED)
        assert watched >= 0, os.strerror(ctypes.get_errno())

    def __call__(self, _running: Sequence[Argv] = ()) -> bool:
        """Tell by what has happened, whatever runs; what is told once is told no more."""
        try:
            return bool(os.read(self._events, 4096))
        except BlockingIOError:
            return False

    def close(self) -> None:
        os.close(self._events)


@contextmanager
def only_by_hand(team: Team) -> Iterator[None]:
    """Let no run of the collector begin but those that a test starts; in the end the server has no fault."""
    was = _spec(team, CRON_JOB)
    application = _spec(team, PLATFORM) if team.controller == "argocd" else None
    if application is not None:
        _patch(team, PLATFORM, {"syncPolicy": {"automated": None}})
    _patch(team, CRON_JOB, {"suspend": True, **KEPT})
    try:
        until("no collector runs", lambda: not _active(team), seconds=RUN_SECONDS, pause=0.5)
        yield
    finally:
        team.forge.faults()
        _patch(team, CRON_JOB, {key: was[key] for key in ("suspend", *KEPT)})
        if application is not None:
            _patch(team, PLATFORM, {"syncPolicy": application["syncPolicy"]})


def _spec(team: Team, item: tuple[str, str, str]) -> dict[str, Any]:
    kind, name, namespace = item
    completed = team.server.kubectl("get", kind, name, f"--namespace={namespace}", "--output=json")
    spec: dict[str, Any] = json.loads(completed.stdout)["spec"]
    return spec


def _patch(team: Team, item: tuple[str, str, str], spec: Mapping[str, Any]) -> None:
    kind, name, namespace = item
    options = (f"--namespace={namespace}", "--type=merge", "--patch", json.dumps({"spec": spec}))
    team.server.kubectl("patch", kind, name, *options)


def _cgroups(uid: str) -> list[Path]:
    """List the folders of a pod's containers, in one hierarchy: asking all processes of a machine is slow."""
    first = box.CGROUPS / "memory"
    top = (first if first.is_dir() else box.CGROUPS) / box.cgroup()
    return [path for path in box.below(top, f"kubepods/**/pod{uid}/*") if path.is_dir()]


def _active(team: Team) -> list[str]:
    document = team.server.ask(f"/apis/batch/v1/namespaces/{COLLECTORS}/jobs")
    assert document is not None
    return [item["metadata"]["name"] for item in document["items"] if item.get("status", {}).get("active")]


def _pods(team: Team, job: str) -> list[dict[str, Any]]:
    selector = f"labelSelector=batch.kubernetes.io/job-name={job}"
    document = team.server.ask(f"/api/v1/namespaces/{COLLECTORS}/pods?{selector}")
    assert document is not None
    items: list[dict[str, Any]] = document["items"]
    return items
