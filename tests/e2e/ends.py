"""Sweeps whose trials end in every way there is, and the hand that ends those which do not by themselves.

What comes of it is for the tests to judge.
"""

import json
import os
import signal
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.team import NAMESPACE, Batch, Team
from tests.manifests import manifest

SCRIPT = "code/ends.py"
PROGRAM = '''"""A trial that ends as --how says."""
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--how")
how = parser.parse_args().how
mark = os.path.join(os.environ["SWEEP_CHECKPOINTS"], "begun")
is_first = not os.path.exists(mark)
open(mark, "w").close()
print("begun", how, flush=True)
if how == "oom":
    held = []
    while True:
        held.append(b"x" * (8 << 20))
if how == "launcher-oom":
    # Pages of a file without a place count for the pod and for no process: the largest one is the launcher.
    os.dup2(os.memfd_create("beside"), 1)
    os.execvp("head", ["head", "-c", "2G", "/dev/zero"])
if how == "disk":
    with open(os.path.join(os.environ["HOME"], "much"), "wb") as file:
        for _ in range(64):
            file.write(b"x" * (1 << 20))
once = ("deleted", "vanishes", "killed", "evicted")
if how in ("disk", "late", "hangs", "waits") or (how in once and is_first):
    time.sleep(3600)
codes = {"bad": 42, "stops": 43, "fails": 7, "fails-too": 7}
if how in codes:
    sys.exit(codes[how])
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": 1}, file)
'''
ONCE = ("deleted", "vanishes", "killed", "evicted")
"""What happens to the first attempt only."""


@dataclass(frozen=True)
class PlannedBatch:
    """A batch, and how each of its trials is to end, in the order of its table."""

    batch: Batch
    hows: Sequence[str]


@dataclass
class Hand:
    """Ends what is to be ended from outside, once a pod; keeps in mind which pods there were."""

    team: Team
    results: Path
    pods: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    """By batch and how: the uids of all pods that were seen."""
    pods_by_uid: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By uid: the last state of a pod."""
    _done: set[str] = field(default_factory=set)

    def pass_over(self, planned: Iterable[PlannedBatch]) -> None:
        """Look at the pods of some batches, and end those whose turn it is."""
        for item in planned:
            for pod in self.team.pods(item.batch):
                how, uid = self._how(item, _index(pod)), pod["metadata"]["uid"]
                self.pods[item.batch.name, how].add(uid)
                self.pods_by_uid[uid] = pod
                if uid not in self._done and self._has_begun(item.batch, pod) and self._end(how, pod):
                    self._done.add(uid)

    def _how(self, item: PlannedBatch, index: int) -> str:
        return item.hows[index]

    def _mark(self, batch: Batch, index: int) -> Path:
        """Give the file that a trial makes when it has begun."""
        return self.results / batch.name / str(index) / "checkpoints/begun"

    def _has_begun(self, batch: Batch, pod: dict[str, Any]) -> bool:
        return self._mark(batch, _index(pod)).exists() and pod["status"]["phase"] == "Running"

    def _end(self, how: str, pod: dict[str, Any]) -> bool:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if how in ONCE and len(self._of(pod)) > 1:
            return True  # only the first attempt
        match how:
            case "deleted" | "vanishes":
                if how == "vanishes" and not signal_launcher(uid, signal.SIGSTOP):
                    return False  # it could still write a record
                self.team.server.kubectl(
                    "delete", "pod", name, f"--namespace={NAMESPACE}", "--force", "--wait=false"
                )
            case "evicted":
                evict(self.team, name)
            case "killed":
                return signal_launcher(uid, signal.SIGKILL)
            case "hangs":
                return signal_launcher(uid, signal.SIGSTOP)
        return True

    def _of(self, pod: dict[str, Any]) -> set[str]:
        return next(uids for uids in self.pods.values() if pod["metadata"]["uid"] in uids)


def evict(team: Team, pod: str) -> None:
    wanted = manifest("Eviction", pod, NAMESPACE, api="policy/v1")
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
    team.server.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(wanted))


def signal_launcher(uid: str, number: int) -> bool:
    """Send a signal to the first process of a pod's container; tell whether there was one."""
    pid = launcher(uid)
    if pid is None:
        return False
    os.kill(pid, number)
    return True


def launcher(uid: str) -> int | None:
    """Find the first process of a pod's container, which sees all of its own but none of ours."""
    wanted = f"SWEEP_POD_UID={uid}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            status = (folder / "status").read_text()
        except OSError:  # it ended
            continue
        seen_as = next(line for line in status.splitlines() if line.startswith("NSpid:"))
        if wanted in variables and seen_as.split()[-1] == "1":
            return int(folder.name)
    return None


def _index(pod: dict[str, Any]) -> int:
    """Return the row of a pod's trial: a label names it where each trial has its own Job, whose only index is 0."""
    metadata = pod["metadata"]
    index = metadata["labels"].get("sweepledger.dev/index")
    return int(
        metadata["annotations"]["batch.kubernetes.io/job-completion-index"] if index is None else index
    )
