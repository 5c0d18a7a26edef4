"""Trials whose records are in pods (`results.store: api`, `claim`) on a real API server, under faults.

python benchmarks/held_pods.py [TRIALS] [KILLS]

1,000 trials and 60 collectors that are killed by default. The bars: no record lost, none that no launcher wrote, no pod
released before its record is on the branch, and none held in the end.
"""

import json
import os
import random
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from csv import DictReader
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "generator")]

from sweepledger.formats.launch_json import LAUNCHER_PATH  # noqa: E402
from sweepledger.repo import batches  # noqa: E402
from sweepledger.repo.batches import StoredBatch  # noqa: E402
from tests.cluster import apiserver  # noqa: E402
from tests.cluster.apiserver import Server  # noqa: E402
from tests.operations.clusters import IMAGE_ID, INDEX, MOMENT, STATUS  # noqa: E402
from tests.operations.test_collect import leave  # noqa: E402
from tests.operations.test_collect_pods import FINALIZERS  # noqa: E402
from tests.repository import IMAGE, Sandbox  # noqa: E402

SEED = 21
NAMESPACE = "held"
PER_BATCH = 100
FATES: Mapping[str, tuple[str, ...]] = {
    "none": ("ok",),
    "none at all": ("ok",),
    "retried": ("failed", "ok"),
    "twice": ("ok", "ok"),
    "deleted": ("deleted",),
    "node lost": ("lost", "ok"),
    "forged": ("ok", "forged"),
    "late": ("late",),
}
"""What becomes of the pods of a trial, by its fault."""
FORGED = 99.0
"""A score that no launcher wrote."""
JOBS_DELETED = 0.2
"""The share of batches whose Job is gone before any collection."""
LONGEST = 8
"""The latest moment of a kill, in times of a run that has nothing to do."""
GONE = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "the node is gone",
}


@dataclass(frozen=True)
class Attempt:
    """A pod, and its fate."""

    batch: StoredBatch
    index: int
    fate: str
    name: str

    def message(self, folder: Path, uid: str) -> str:
        """Write what its launcher, or whoever forges that, leaves."""
        index, changes = self.index, dict[str, Any]()
        if self.fate == "failed":
            changes = {"status": "failed", "reason": "exit-1", "metrics": {}}
        elif self.fate == "forged":  # of another trial
            index, changes = (index + 1) % self.batch.lock.trials, {"metrics": {"score": FORGED}}
        return leave(folder, self.batch, index, uid=uid, **changes).read_text()


class Cluster:
    """A namespace in which this program is controller and kubelet."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._address = json.loads(server.kubeconfig.read_text())["clusters"][0]["cluster"]
        self._trusted = ssl.create_default_context(cafile=self._address["certificate-authority"])
        self.server.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}},
        )  # fmt: skip

    def pods(self) -> dict[str, dict[str, Any]]:
        """Give the metadata of all pods by name."""
        document = self.server.ask(f"/api/v1/namespaces/{NAMESPACE}/pods")
        assert document is not None
        return {pod["metadata"]["name"]: pod["metadata"] for pod in document["items"]}

    def say(self, path: str, status: Mapping[str, Any]) -> None:
        """Write a status."""
        request = urllib.request.Request(  # noqa: S310 - our own server
            f"{self._address['server']}{path}/status",
            data=json.dumps({"status": status}).encode(),
            method="PATCH",
            headers={
                "Authorization": f"Bearer {apiserver.TOKEN}",
                "Content-Type": "application/merge-patch+json",
            },
        )
        urllib.request.urlopen(request, context=self._trusted).close()  # noqa: S310

    def end(self, attempt: Attempt, message: str) -> None:
        """Let a pod end."""
        has_failed = attempt.fate in {"failed", "lost"}
        ended = {"exitCode": int(has_failed), "reason": "Error", "startedAt": MOMENT, "finishedAt": MOMENT}
        state: dict[str, Any] = {"terminated": {**ended, "message": message}}
        container = {"name": "trial", "image": "a.example/b", "imageID": IMAGE_ID, "ready": False}
        status = {
            "phase": "Failed" if has_failed else "Succeeded",
            "startTime": MOMENT,
            "containerStatuses": [{**container, "restartCount": 0, "state": state}],
            "conditions": [GONE] if attempt.fate == "lost" else [],
        }
        self.say(f"/api/v1/namespaces/{NAMESPACE}/pods/{attempt.name}", status)

    def delete(self, kind: str, *names: str) -> None:
        """Delete objects by hand."""
        how = (f"--namespace={NAMESPACE}", "--wait=false", "--cascade=background")
        self.server.kubectl("delete", kind, *names, *how)


def job(batch: StoredBatch) -> dict[str, Any]:
    """Return the Job of a batch."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "trial", "image": "a.example/b"}]}
    counted = {"completionMode": "Indexed", "completions": batch.lock.trials, "backoffLimitPerIndex": 1}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": batch.name, "namespace": NAMESPACE, "labels": {"sweepledger.dev/batch": batch.name}},
        "spec": {**counted, "template": {"spec": pod}},
    }  # fmt: skip


def pod(attempt: Attempt) -> dict[str, Any]:
    """Return the held pod of an attempt: it is known as a trial's by its command."""
    container = {"name": "trial", "image": "a.example/b", "command": ["python3", LAUNCHER_PATH]}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "uid": "1", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": attempt.name,
            "namespace": NAMESPACE,
            "labels": {"sweepledger.dev/batch": attempt.batch.name},
            "annotations": {INDEX: str(attempt.index)},
            "finalizers": FINALIZERS,
            "ownerReferences": [{**owner, "name": attempt.batch.name}],
        },
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def trained(cluster: Cluster, batch: StoredBatch, chance: random.Random, folder: Path) -> list[Attempt]:
    """Let the trials of a batch meet their faults; give the attempts that have not ended when the Job has."""
    attempts = [
        Attempt(batch, index, fate, f"{batch.name}-{index}-{number}")
        for index in range(batch.lock.trials)
        for number, fate in enumerate(FATES[chance.choice(list(FATES))])
    ]
    cluster.server.apply(job(batch), *map(pod, attempts))
    uids = {name: metadata["uid"] for name, metadata in cluster.pods().items()}
    for attempt in attempts:
        if attempt.fate == "late":
            cluster.say(f"/api/v1/namespaces/{NAMESPACE}/pods/{attempt.name}", {"phase": "Running"})
        else:
            is_silent = attempt.fate == "lost"
            cluster.end(attempt, "" if is_silent else attempt.message(folder, uids[attempt.name]))
    deleted = [attempt.name for attempt in attempts if attempt.fate == "deleted"]
    if deleted:
        cluster.delete("pods", *deleted, "--force")
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": MOMENT, "reason": "Test", "message": ""}
        for kind in STATUS["Complete"]["conditions"]
    ]
    status = {"startTime": MOMENT, "completionTime": MOMENT, "conditions": conditions}
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{batch.name}"
    cluster.say(path, {**status, "completedIndexes": f"0-{batch.lock.trials - 1}"})
    if chance.random() < JOBS_DELETED:
        cluster.delete("jobs", batch.name)
    return attempts


class Collectors:
    """Runs of the collector, each in a clone of its own, as a CronJob makes it."""

    def __init__(self, sandbox: Sandbox, server: Server, folder: Path) -> None:
        self.sandbox, self.folder = sandbox, folder
        self.environment = {
            **os.environ,
            "KUBECONFIG": str(server.kubeconfig),
            "KUBECTL": apiserver.kubectl(),
            "PYTHONPATH": str(ROOT / "generator"),
            **{f"GIT_{who}_NAME": "collector" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "collector@example.org" for who in ("AUTHOR", "COMMITTER")},
        }

    def start(self) -> subprocess.Popen[str]:
        """Start a run."""
        clone = tempfile.mkdtemp(dir=self.folder)
        subprocess.run(["git", "clone", "-q", str(self.sandbox.remote), clone], check=True)
        return subprocess.Popen(
            [sys.executable, "-m", "sweepledger.cli", "cluster", "collect", "--push", "--cluster"],
            cwd=clone,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # killed with git and kubectl, as a container is
        )

    def finish(self) -> float:
        """Let a run end by itself; give how long it took."""
        began = time.monotonic()
        run = self.start()
        output, _ = run.communicate()
        assert run.returncode == 0, output
        self._forget()
        return time.monotonic() - began

    def kill(self, after: float, count: int) -> None:
        """Start runs at once, and kill them after some time."""
        runs = [self.start() for _ in range(count)]
        time.sleep(after)
        for run in runs:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
        self._forget()

    def _forget(self) -> None:
        for clone in self.folder.iterdir():
            shutil.rmtree(clone)


def recorded_rows(sandbox: Sandbox) -> dict[tuple[str, int], dict[str, str]]:
    """Return the rows of all summaries on the branch, by batch and trial."""
    sandbox.git("fetch", "-q", "origin")
    paths = sandbox.git("ls-tree", "-r", "--name-only", "origin/main", "results/").split()
    rows = {}
    for path in paths:
        if path.endswith("/summary.csv"):
            for row in DictReader(sandbox.git("show", f"origin/main:{path}").splitlines()):
                rows[row["batch"], int(row["index"])] = row
    return rows


def too_early(cluster: Cluster, sandbox: Sandbox, attempts: Mapping[str, Attempt]) -> Iterator[str]:
    """Yield the pods that are released although the branch has no results of their trial."""
    metadata = cluster.pods()  # first: what is released later does not matter
    rows = recorded_rows(sandbox)
    for name, attempt in attempts.items():
        is_held = name in metadata and "finalizers" in metadata[name]
        if not is_held and (attempt.batch.name, attempt.index) not in rows:
            yield name


def main(arguments: list[str]) -> int:
    """Train, collect under fire, and judge."""
    trials, kills = (
        int(arguments[place]) if len(arguments) > place else each for place, each in ((0, 1000), (1, 60))
    )
    chance = random.Random(SEED)  # noqa: S311 - faults that can be had again
    with apiserver.running() as server, tempfile.TemporaryDirectory(prefix="sweep-held-") as scratch:
        folder = Path(scratch)
        (folder / "clones").mkdir()
        sandbox, cluster = Sandbox.create(folder / "sandbox"), Cluster(server)
        sandbox.write(
            "sweepledger.yaml",
            f"version: 1\nnamespace: {NAMESPACE}\nresults: {{store: api}}\ndefaults: {{image: '{IMAGE}'}}\n",
        )
        sandbox.commit("Keep records in pods")
        sandbox.push()
        collectors = Collectors(sandbox, server, folder / "clones")
        idle = collectors.finish()
        numbers = ", ".join(str(number) for number in range(PER_BATCH))
        for number in range(trials // PER_BATCH):
            sandbox.merged(f"faults-{number}", xs=numbers)
        stored = batches.in_work_tree(sandbox.root)
        attempts = {
            attempt.name: attempt
            for batch in stored
            for attempt in trained(cluster, batch, chance, folder / "records")
        }
        fates = Counter(attempt.fate for attempt in attempts.values())
        print(
            f"{trials} trials in {len(stored)} batches, {len(attempts)} pods: {dict(sorted(fates.items()))}"
        )
        planned = [(chance.uniform(0, LONGEST * idle), chance.choice((1, 1, 2))) for _ in range(kills)]
        return judge(sandbox, cluster, attempts, collectors, planned)


def judge(
    sandbox: Sandbox,
    cluster: Cluster,
    attempts: Mapping[str, Attempt],
    collectors: Collectors,
    kills: Sequence[tuple[float, int]],
) -> int:
    """Collect while collectors are killed, then undisturbed; say what was lost.

    `kills` has the moments, in seconds after the start, and the numbers of collectors that run at once.
    """
    early: set[str] = set()
    for moment, count in kills:
        collectors.kill(moment, count)
        early |= set(too_early(cluster, sandbox, attempts))
    done = len(recorded_rows(sandbox))
    collectors.finish()
    metadata = cluster.pods()
    for attempt in attempts.values():
        if attempt.fate == "late":
            message = attempt.message(collectors.folder.parent / "records", metadata[attempt.name]["uid"])
            cluster.end(attempt, message)
    for _ in range(2):
        collectors.finish()
        early |= set(too_early(cluster, sandbox, attempts))
    rows = recorded_rows(sandbox)
    wanted = {(one.batch.name, one.index) for one in attempts.values()}
    # Every trial has a pod that ended well.
    lost = {key for key in wanted if key not in rows or rows[key]["status"] != "ok"}
    false = {key for key, row in rows.items() if row["metrics.score"] != f"{key[1] / 2:g}"}
    held = [name for name, each in cluster.pods().items() if each.get("finalizers")]
    print(f"{len(kills)} killed collectors had recorded {done} trials")
    print(f"lost {len(lost)}, recorded without being written {len(false)}")
    print(f"pods released too early {len(early)}, held in the end {len(held)}")
    return int(bool(lost or false or early or held))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
