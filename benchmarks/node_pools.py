"""Three pools of a hundred nodes that Karpenter grows and shrinks to nothing, beside what `sweep plan` forecast.

python -m tests.cluster.box python benchmarks/node_pools.py [--controller NAME] [--spot-policy POLICY]

The pools, queues and node pools are those of `examples/pools`; Flux, Kueue, scheduler and Karpenter are real. The
nodes are fake: each is ready 60 s after Karpenter has asked for it, and trials take any time from 60 to 120 s.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.cluster_collect import leave_record
from benchmarks.cluster_meter import status_of
from benchmarks.cluster_runs import TUNING
from benchmarks.makespan_cluster import recorded_by_pods
from sweepledger.operations.repository.workspace import parse_settings
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.values import SECONDS_PER_HOUR
from tests.cluster import controller_files, fleet, karpenter, kwok
from tests.cluster.apiserver import kubectl
from tests.cluster.children import until
from tests.cluster.fleet import Ask, Fleet
from tests.cluster.machine import Machine
from tests.e2e.controllers import CONTROLLERS
from tests.e2e.team import NAMESPACE, has_ended

BOOT_SECONDS = 60
SHORTEST, LONGEST = 60.0, 120.0
"""Seconds of a trial."""
PATIENCE = 1800.0
STEP = 30
"""Seconds between two numbers of nodes that are printed."""
EARLIER = Ask("earlier", 40, 40)
"""On nodes that run already: the records of the program that a forecast is made of."""
ASKS = (
    Ask("features", 300, 200, pool="cpu", resources="{cpu: 7, memory: 16Gi}"),
    Ask("probe", 150, 100, pool="gpu-light", resources="{cpu: 4, memory: 16Gi, gpu: 1}"),
    Ask("finetune", 300, 200, pool="gpu-heavy", resources="{cpu: 40, memory: 400Gi, gpu: 4}"),
)
"""One and a half times what a hundred nodes carry at once."""
DISRUPTED = '.status.conditions[?(@.type=="DisruptionTarget")].reason'
COMPLETE = '.status.conditions[?(@.type=="Complete")].status'
JOB = ".metadata.labels.batch\\.kubernetes\\.io/job-name"
JOBS = {"name": ".metadata.name", "admitted": ".status.startTime", "complete": COMPLETE}
PODS = {
    "job": JOB,
    "node": ".spec.nodeName",
    "steady": ".metadata.annotations.karpenter\\.sh/do-not-disrupt",
    "disrupted": DISRUPTED,
    "started": ".status.startTime",
    "ended": ".status.containerStatuses[*].state.terminated.finishedAt",
}


@dataclass
class Course:
    """What became of an object, by the clock of whoever watches."""

    came: float
    values: dict[str, str] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    """When each field was first set to something other than `False`."""
    gone: float | None = None


class Courses:
    """The objects of a kind as they come, change and go."""

    def __init__(self) -> None:
        self.by_uid: dict[str, Course] = {}

    def note(self, uid: str, values: dict[str, str], *, is_gone: bool = False) -> None:
        """Take down what an object is now."""
        now = time.time()
        course = self.by_uid.setdefault(uid, Course(now))
        course.values = values
        for name, text in values.items():
            if text not in {"", "False", "Unknown"}:
                course.since.setdefault(name, now)
        if is_gone:
            course.gone = now

    def of(self, **values: str) -> list[Course]:
        """Give the objects with these values."""
        courses = list(self.by_uid.values())
        return [one for one in courses if all(one.values.get(name) == text for name, text in values.items())]


class Claims(Courses):
    """The claims of Karpenter, a node each, by looking again and again; the times are those of the cluster."""

    def look(self, machine: Machine) -> int:
        """Take down all claims, and say how many are left."""
        try:
            # From the server's cache: three hundred nodes that start at once keep its store busy.
            listed = machine.server.ask("/apis/karpenter.sh/v1/nodeclaims?resourceVersion=0") or {"items": []}
        except OSError as error:
            print(f"claims are not listed: {error}", file=sys.stderr, flush=True)
            return sum(course.gone is None for course in self.by_uid.values())
        claims = {claim["metadata"]["uid"]: claim for claim in listed["items"]}
        for uid, claim in claims.items():
            pool = claim["metadata"]["labels"][karpenter.POOL_LABEL]
            self.note(uid, {"pool": pool})
            self.by_uid[uid].came = _at(claim["metadata"]["creationTimestamp"])
            for condition in controller_files.conditions(claim.get("status", {})):
                if condition["type"] == "Initialized" and condition["status"] == "True":
                    self.by_uid[uid].since["ready"] = _at(condition["lastTransitionTime"])
        for uid in self.by_uid.keys() - claims.keys():
            if self.by_uid[uid].gone is None:
                self.by_uid[uid].gone = time.time()
        return len(claims)


class Watch(Courses):
    """The same by a watch, which is begun anew where it ends."""

    def __init__(self, machine: Machine, kind: str, fields: Mapping[str, str], *options: str) -> None:
        super().__init__()
        self._fields = tuple(fields)
        shown = "|".join(f"{{.object{path}}}" for path in fields.values())
        path = f'{{.type}}|{{.object.metadata.uid}}|{shown}{{"\\n"}}'
        command = [kubectl(), f"--kubeconfig={machine.server.kubeconfig}", "get", kind, *options]
        self._command = [*command, "--watch", "--output-watch-events", f"--output=jsonpath={path}"]

    def __enter__(self) -> Self:
        self._ends = False
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends = True
        self._process.terminate()
        self._thread.join()

    def _read(self) -> None:
        while True:
            assert self._process.stdout is not None
            for line in self._process.stdout:
                event, uid, *texts = line.rstrip("\n").split("|")
                values = dict(zip(self._fields, texts, strict=True))
                self.note(uid, values, is_gone=event == "DELETED")
            status = self._process.wait()
            if self._ends:
                return
            print(f"a watch ended with {status}: {self._command[3]}", file=sys.stderr, flush=True)
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)


@dataclass(frozen=True)
class Seen:
    """What was seen of one pool, and what was forecast of it."""

    ask: Ask
    pool: Pool
    forecast: Mapping[str, Any]
    job: Course
    claims: Sequence[Course]
    pods: Sequence[Course]

    def rows(self) -> Iterator[tuple[str, str]]:
        """Give what the table says of the pool, measure by measure."""
        began, claims = self.job.came, self.claims
        ready = [one.since["ready"] - began for one in claims if "ready" in one.since]
        ended = max(pod.since["ended"] for pod in self.pods if "ended" in pod.since)
        gone = [one.gone for one in claims if one.gone is not None]
        cost = self.node_seconds / SECONDS_PER_HOUR * (self.pool.price or 0)
        yield "trials, at once", f"{self.ask.trials}, {self.ask.parallelism}"
        yield "nodes at most", str(max(count for _, count in self.counts(1)))
        yield "nodes in all", str(len(claims))
        yield "admitted by Kueue, s", f"{self.job.since['admitted'] - began:.1f}"
        yield "first node requested, s", f"{min(one.came for one in claims) - began:.1f}"
        yield "last node requested, s", f"{max(one.came for one in claims) - began:.1f}"
        yield "first node ready, s", f"{min(ready):.1f}"
        yield "all nodes ready, s", f"{max(ready):.1f}"
        yield "makespan, s", f"{self.job.since['complete'] - began:.0f}"
        yield "  forecast, s", interval(self.forecast["completion_seconds"], 0)
        yield "trial hours", f"{self.trial_seconds / SECONDS_PER_HOUR:.2f}"
        yield "  forecast", interval(self.forecast["trial_hours"], 2)
        yield "node hours", f"{self.node_seconds / SECONDS_PER_HOUR:.2f}"
        yield "  of which starting", f"{self.starting_seconds / SECONDS_PER_HOUR:.2f}"
        yield "  of which used by trials", f"{self.used_seconds / SECONDS_PER_HOUR:.2f}"
        yield "cost", f"{cost:.2f}"
        yield "  forecast", interval(self.forecast["money"], 2)
        yield "cost / forecast", f"{cost / self.forecast['money']['median']:.2f}"
        yield "last trial's end to no node, s", f"{max(gone) - ended:.0f}"
        yield "pods that must not be moved", f"{sum(pod.values['steady'] == 'true' for pod in self.pods)}"
        yield "pods moved", f"{sum(self.is_moved(pod) for pod in self.pods)}"

    def counts(self, step: int) -> Iterator[tuple[int, int]]:
        """Count the nodes that were requested and not given back, every few seconds from the Job's creation."""
        last = max(one.gone or 0 for one in self.claims)
        for seconds in range(0, int(last - self.job.came) + step, step):
            now = self.job.came + seconds
            yield seconds, sum(one.came <= now < (one.gone or now + 1) for one in self.claims)

    @property
    def node_seconds(self) -> float:
        """Seconds of all nodes, from the request to the end, which is what a provider charges for."""
        return sum((one.gone or time.time()) - one.came for one in self.claims)

    @property
    def starting_seconds(self) -> float:
        """Seconds of all nodes before they were ready."""
        return sum(one.since["ready"] - one.came for one in self.claims if "ready" in one.since)

    @property
    def trial_seconds(self) -> float:
        """Seconds of all trials."""
        return sum(pod.since["ended"] - pod.since["started"] for pod in self.pods if "ended" in pod.since)

    @property
    def used_seconds(self) -> float:
        """Seconds of nodes that the trials would have filled."""
        per_node = self.ask.parallelism / (self.pool.max_nodes or 1)
        return self.trial_seconds / per_node

    @staticmethod
    def is_moved(pod: Course) -> bool:
        """Tell whether a pod was evicted, or went without having ended."""
        return bool(pod.values["disrupted"]) or (pod.gone is not None and "ended" not in pod.since)


def _at(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def interval(quantiles: Mapping[str, float], digits: int) -> str:
    """Lay out a median with the interval that contains 80 % of the draws."""
    low, median, high = (f"{quantiles[name]:,.{digits}f}" for name in ("low", "median", "high"))
    return f"{median} ({low} to {high})"


def measured(machine: Machine, controller: str, spot_policy: str | None) -> list[Seen]:
    """Run the sweeps on pools without nodes, until no node is left."""
    made = karpenter.start_fleet(machine, controller, boot_seconds=BOOT_SECONDS)
    if spot_policy is not None:
        patch = json.dumps({"spec": {"disruption": {"consolidationPolicy": spot_policy}}})
        machine.server.kubectl("patch", "nodepool", "gpu-heavy", "--type=merge", f"--patch={patch}")
    _record_an_earlier_sweep(made)
    names = made.ask(*ASKS)
    planned = json.loads(made.team.sweep("plan", *(ask.name for ask in ASKS), "--format=json").stdout)
    forecasts = {one["name"]: one["forecast"] for one in planned["data"]["sweeps"]}
    for name, forecast in forecasts.items():
        print(f"{name}: forecast from {forecast['records']} records, by {forecast['by']}", flush=True)
    chosen = (f"--namespace={NAMESPACE}",)
    claims = Claims()
    with (
        Watch(machine, "jobs", JOBS, *chosen) as jobs,
        Watch(machine, "pods", PODS, *chosen, "--selector=sweepledger.dev/sweep!=earlier") as pods,
    ):
        before = machine.children.cpu_seconds(karpenter.NAME)
        made.push()
        _wait(machine, claims, (jobs, pods), names)
        used = machine.children.cpu_seconds(karpenter.NAME) - before
    print(f"Karpenter used {used:.0f} CPU s; load of this machine at the end {os.getloadavg()[0]:.1f}")
    pools = parse_settings((made.team.root / "sweepledger.yaml").read_bytes()).trials.pools
    return [
        Seen(
            ask,
            pools[ask.pool],
            forecasts[ask.name],
            jobs.of(name=name)[0],
            claims=claims.of(pool=ask.pool),
            pods=pods.of(job=name),
        )
        for ask, name in zip(ASKS, names, strict=True)
    ]


def _record_an_earlier_sweep(made: Fleet) -> None:
    """Let a sweep of the same program run where nodes are, and record it, as the forecast needs."""
    made.ask(EARLIER)
    made.push()
    batch = made.team.batch(EARLIER.name)
    until("an earlier sweep has ended", lambda: any(map(has_ended, made.team.jobs(batch))), seconds=PATIENCE)
    _, records = recorded_by_pods(made.team, batch)
    results = made.machine.folder / "results"
    for record in records:
        leave_record(results, record)
    made.team.sweep("cluster", "collect", "--push", "--cluster", f"--results={results}")
    made.team.git("pull", "-q", "--ff-only", "origin", "main")


def _wait(machine: Machine, claims: Claims, watches: tuple[Watch, Watch], names: Sequence[str]) -> None:
    """Wait until all Jobs are complete and no node is left, and print every step."""
    jobs, pods = watches
    deadline, printed = time.monotonic() + PATIENCE, 0.0
    while True:
        assert time.monotonic() < deadline, machine.children.tail(karpenter.NAME)
        complete = sum(bool(jobs.of(name=name, complete="True")) for name in names)
        left = claims.look(machine)
        if complete == len(names) and not left:
            return
        if time.monotonic() - printed >= STEP:
            printed = time.monotonic()
            ended = sum("ended" in pod.since for pod in list(pods.by_uid.values()))
            print(f"  {left} nodes, {ended} trials ended, {complete} Jobs complete", flush=True)
        time.sleep(1)


def shown(results: Sequence[Seen]) -> Iterator[str]:
    """Lay out the table, and the nodes of each pool over time."""
    width = 24
    yield f"{'':32}" + "".join(f"{one.ask.pool:>{width}}" for one in results)
    for cells in zip(*(one.rows() for one in results), strict=True):
        yield f"{cells[0][0]:32}" + "".join(f"{text:>{width}}" for _, text in cells)
    for one in results:
        yield f"{one.ask.pool}, nodes every {STEP} s: " + " ".join(
            str(count) for _, count in one.counts(STEP)
        )


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--controller", choices=sorted(CONTROLLERS), default="flux")
    parser.add_argument(
        "--spot-policy",
        choices=["WhenEmpty", "WhenEmptyOrUnderutilized"],
        help="consolidationPolicy of the spot pool; that of the example if none is named",
    )
    chosen = parser.parse_args()
    with fleet.cluster(nodes=1, tuning=TUNING) as machine:
        kwok.restart(machine, seconds=SHORTEST, most=LONGEST)
        for line in shown(measured(machine, chosen.controller, chosen.spot_policy)):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(status_of(main))
