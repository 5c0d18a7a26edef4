"""The measurements of `benchmarks/cluster.py` that need a cluster: each has a fresh one, with fake nodes."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cluster_collect
from benchmarks.cluster_meter import Jobs, Meter, objects, requests
from benchmarks.meter import measured
from sweepledger.formats import records_jsonl
from sweepledger.repo import batches
from sweepledger.repo.git import Repository
from tests.cluster import argocd, controller_files, fleet
from tests.cluster.control_plane import Tuning
from tests.cluster.fleet import Ask, Fleet
from tests.e2e.team import NAMESPACE

LIMITS = ("--kube-api-qps=500", "--kube-api-burst=1000")
PATIENT = "--node-monitor-grace-period=120s"  # two cores under load: no lease comes in time
TUNING = Tuning(controllers=(*LIMITS, PATIENT), scheduler=LIMITS)
USUAL = Tuning(controllers=(PATIENT,))
PACE = argocd.Pace(
    seconds=120,
    more=dict.fromkeys((argocd.REPO, argocd.CONTROLLER, argocd.SERVER), ("--redis-compress=none",)),
)
"""As Argo CD comes, with the settings of docs/how-to/bootstrap-argocd.md."""
CONDITIONS = """\
fake nodes: 10, by kwok; client limits of controller manager and scheduler: 500 requests a second, bursts of
1,000, but for `many` as they come (20 and 30, 50 and 100); controllers hear of a push by webhook, and look
by themselves every minute (Flux), 30 s (ApplicationSet), 2 minutes (Applications)"""
LONGEST = 3600.0
FIRST_RUNS = 10
COLLECTOR_BARS = (10.0, 150.0)
SUCCESSOR_BAR = 15.0
CHAIN_SECONDS = 15
"""Of a trial."""
CHAIN = """name: chain
description: How long does a search wait for its next trial?
method: tpe
seed: 1
rounds: {{size: 1, max: {trials}}}
metric: {{name: loss}}
parameters: {{x: {{min: 0.0, max: 1.0}}}}
command: [python3, code/train.py, "${{args}}"]
run:
  code: {{path: code}}
  shape: indexed
  parallelism: 1
  resources: {{cpu: 1, memory: 256Mi}}
  timeout: 1h
"""


@dataclass(frozen=True)
class Row:
    """One number, what it is of, and what it may be at most."""

    what: str
    measure: str
    value: float
    unit: str
    bar: float | None = None

    @property
    def is_late(self) -> bool:
        """Tell whether it missed its bar."""
        return self.bar is not None and self.value > self.bar


@contextmanager
def _followed(follower: str, seconds: float, tuning: Tuning = TUNING) -> Iterator[Fleet]:
    with fleet.cluster(seconds=seconds, tuning=tuning) as machine:
        yield fleet.start_fleet(machine, follower, pace=PACE)


def large(follower: str, trials: int = 10_000, parallelism: int = 500) -> Iterator[Row]:
    """One Indexed Job from push to complete."""
    what = f"{trials:,} trials indexed, {parallelism} at once, {follower}"
    with _followed(follower, 0) as made, Jobs(made.machine) as jobs:
        idle = Meter(made.machine)
        time.sleep(30)
        yield from _used(f"idle for 30 s, {follower}", idle)
        yield from _run(made, jobs, what, (Ask("large", trials, parallelism),))
        (name,) = jobs.created
        job = controller_files.got(made.machine, ("job", NAMESPACE, name))
        assert job["status"]["succeeded"] == trials, job["status"]
        yield Row(what, "the Job's status", len(json.dumps(job["status"])), "characters")
        yield from _recorded(made, what)


def successor(follower: str, trials: int = 6) -> Iterator[Row]:
    """How long a search waits from the end of a trial to the Job of the next, with a collector that watches."""
    what = f"end of a trial to the Job of its successor, {follower}"
    with _followed(follower, CHAIN_SECONDS) as made, Jobs(made.machine) as jobs:
        settings = made.team.root / "sweepledger.yaml"
        made.team.write("sweepledger.yaml", f"{settings.read_text()}next: collector\n")
        made.team.write("sweeps/chain.yaml", CHAIN.format(trials=trials))
        made.team.sweep("generate", "chain")
        made.team.git("add", "--all")
        made.team.git("commit", "-q", "-m", "Ask for a search")
        made.push()
        with _watching_collector(made) as results:
            for number in range(trials):
                jobs.until(what, LONGEST, created=number + 1)
                _leave_record(made, results, list(jobs.created)[number])
            jobs.until(what, LONGEST, completed=trials)
    ended, begun = sorted(jobs.completed.values()), sorted(jobs.created.values())
    waits = [after - before for before, after in zip(ended, begun[1:], strict=False)]
    yield Row(what, "load of this machine at the end", os.getloadavg()[0], "")
    yield Row(what, f"median of {len(waits)}", statistics.median(waits), "s", SUCCESSOR_BAR)
    yield Row(what, "the longest", max(waits), "s")


@contextmanager
def _watching_collector(made: Fleet) -> Iterator[Path]:
    """Run the collector as its CronJob does, in a clone of its own; give the folder of the results volume."""
    clone, results = made.machine.folder / "clone", made.machine.folder / "results"
    made.team.git("clone", "-q", made.team.git("remote", "get-url", "origin").strip(), str(clone))
    results.mkdir(exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "sweepledger.cli",
        "cluster",
        "collect",
        "--push",
        "--cluster",
        "--watch=1800",
    ]
    environment = {
        **os.environ,
        "KUBECONFIG": str(made.machine.server.kubeconfig),
        "GIT_AUTHOR_NAME": "collector",
        "GIT_AUTHOR_EMAIL": "collector@example.org",
        "GIT_COMMITTER_NAME": "collector",
        "GIT_COMMITTER_EMAIL": "collector@example.org",
    }
    process = subprocess.Popen([*command, f"--results={results}"], cwd=clone, env=environment)
    try:
        yield results
    finally:
        process.terminate()
        process.wait()


def _leave_record(made: Fleet, results: Path, name: str) -> None:
    """Leave the record of the only trial of a batch shortly before its pod ends."""
    deadline = time.monotonic() + LONGEST
    while not (uids := {int(index): uid for job, index, uid in _pods(made) if job == name}):
        assert time.monotonic() < deadline, f"{name} has no pod"
        time.sleep(0.2)
    time.sleep(CHAIN_SECONDS / 2)  # with a record, a batch whose Job nobody has seen counts as ended
    made.team.git("fetch", "-q", "origin")
    repository = Repository.find(made.team.root)
    stored = batches.in_commit(repository, repository.commit("refs/remotes/origin/main"))
    (batch,) = (one for one in stored if one.name == name)
    cluster_collect.leave(results, batch, uids)


def _recorded(made: Fleet, what: str) -> Iterator[Row]:
    """Let a person ask where the sweep stands, then record it as the collector of the cluster does."""
    (batch,) = batches.in_work_tree(made.team.root)
    results = made.machine.folder / "results"
    cluster_collect.leave(results, batch, {int(index): uid for _, index, uid in _pods(made)})
    sweep = [sys.executable, "-m", "sweepledger.cli"]
    os.environ["KUBECONFIG"] = str(made.machine.server.kubeconfig)
    for words, bars in (
        (["status", "--cluster"], (None, None)),
        (["cluster", "collect", "--push", "--cluster", f"--results={results}"], COLLECTOR_BARS),
    ):
        used = measured([*sweep, *words], made.team.root)
        shown = f"`sweep {' '.join(words[:3])}`"
        yield Row(what, shown, used.seconds, "CPU s", bars[0])
        yield Row(what, f"{shown}, memory", used.mebibytes, "MiB", bars[1])
    made.team.git("fetch", "-q", "origin")
    path = f"origin/main:results/{batch.lock.sweep}/records/{batch.name}.jsonl"
    records = records_jsonl.records(made.team.git("show", path).encode())
    assert len(records) == batch.lock.trials


def shapes(follower: str, trials: int = 1_000) -> Iterator[Row]:
    """As many trials by single Jobs as by one Indexed Job, each on a cluster of its own."""
    hundred = 100  # the most that shape `jobs` takes a batch
    single = tuple(Ask(f"single-{at}", hundred, hundred, "jobs") for at in range(trials // hundred))
    for what, asks in (
        (f"{trials:,} trials as single Jobs (10 sweeps), {follower}", single),
        (f"{trials:,} trials indexed, all at once, {follower}", (Ask("indexed", trials, trials),)),
    ):
        with _followed(follower, 0) as made, Jobs(made.machine) as jobs:
            before, count = objects(made.machine), requests(made.machine)
            yield from _run(made, jobs, what, asks)
            after = objects(made.machine)
            for kind in sorted(after):
                yield Row(what, f"{kind} stored", after[kind] - before[kind], "")
            yield Row(what, "requests to the API server", requests(made.machine) - count, "")


def many(follower: str, sweeps: int = 50, trials: int = 100) -> Iterator[Row]:
    """Many sweeps in one merge, where pods are made at the pace that clusters come with."""
    parallelism, seconds = 10, 30
    what = f"{sweeps} sweeps of {trials} (indexed, {parallelism} at once, {seconds} s each), {follower}"
    asks = tuple(Ask(f"many-{at:02}", trials, parallelism) for at in range(sweeps))
    with _followed(follower, seconds, USUAL) as made, Jobs(made.machine) as jobs:
        yield from _run(made, jobs, what, asks, last_created=40)
        ran = Counter((job, index) for job, index, _ in _pods(made))
        assert len(ran) == sweeps * trials, len(ran)
        yield Row(what, "Jobs made twice", jobs.made_twice, "", 0)
        yield Row(what, "trials run twice", sum(count > 1 for count in ran.values()), "", 0)


def first(follower: str, runs: int = FIRST_RUNS) -> Iterator[Row]:
    """How long it takes from a push to a Job where nothing else happens."""
    what = f"push to first Job, idle cluster, {follower}"
    values = []
    with _followed(follower, 1) as made, Jobs(made.machine) as jobs:
        for run in range(runs):
            (name,) = made.ask(Ask(f"first-{run}", 4, 2))
            time.sleep(10)
            began = made.push()
            jobs.until(what, LONGEST, created=run + 1, completed=run + 1)
            values.append(jobs.created[name] - began)
    yield Row(what, f"median of {runs} (Katib's slides: 41 s)", statistics.median(values), "s")
    yield Row(what, "the longest", max(values), "s")


def _run(
    made: Fleet, jobs: Jobs, what: str, asks: tuple[Ask, ...], *, last_created: float | None = None
) -> Iterator[Row]:
    """Ask, push, wait until all is complete; say what it took."""
    made.ask(*asks)
    wanted = sum(ask.trials if ask.shape == "jobs" else 1 for ask in asks)
    yield Row(what, "load of this machine before", os.getloadavg()[0], "")
    meter = Meter(made.machine)
    began = made.push()
    jobs.until(what, LONGEST, created=wanted)
    yield Row(what, "push to first Job", min(jobs.created.values()) - began, "s")
    yield Row(what, "push to last Job", max(jobs.created.values()) - began, "s", last_created)
    jobs.until(what, LONGEST, completed=wanted)
    yield Row(what, "push to all complete", max(jobs.completed.values()) - began, "s")
    yield from _used(what, meter)


def _used(what: str, meter: Meter) -> Iterator[Row]:
    for group, usage in meter.usage().items():
        yield Row(what, group, usage.cpu, "CPU s")
        yield Row(what, f"{group}, most memory", usage.peak_mebibytes, "MiB")


def _pods(made: Fleet) -> Iterator[tuple[str, str, str]]:
    """List Job, index and uid of every trial's pods; no Job was deleted, so all that ever were are there."""
    label = ".metadata.labels.batch\\.kubernetes\\.io/job-"
    item = f'{{{label}name}}{{" "}}{{{label}completion-index}}{{" "}}{{.metadata.uid}}{{"\\n"}}'
    path = f"--output=jsonpath={{range .items[*]}}{item}{{end}}"
    listed = made.machine.server.kubectl("get", "pods", f"--namespace={NAMESPACE}", path)
    for line in listed.stdout.splitlines():
        job, index, uid = line.split()
        yield job, index, uid
