"""`sweep export slurm` on a real Slurm of three nodes: the trials of a cluster, by another scheduler."""

import contextlib
import csv
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sweepledger.repo import batches
from sweepledger.verbs.export import export
from tests.cluster.children import until
from tests.cluster.slurm import NODES, NoSlurmError, Slurm, running
from tests.command_line import captured, run_sweep
from tests.repository import Sandbox, answer

MANY = 1000
ARRAY_SECONDS = 1500.0
FEW_SECONDS = 300.0
PROGRAM = """import os, sys, time
x = float(sys.argv[1].partition("=")[2])
with open(os.environ["SWEEP_RESULTS"] + "/starts", "a") as file:
    file.write(os.environ["SWEEP_NODE"] + "\\n")
while os.path.exists(os.environ["SWEEP_RESULTS"] + "/../../../../hold"):
    time.sleep(0.1)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    file.write('{"score": %s}' % -x)
"""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    try:
        with running() as started:
            yield started
    except NoSlurmError as error:
        pytest.skip(f"skipped: {error}")


@pytest.fixture
def submit(sandbox: Sandbox, slurm: Slurm) -> Callable[..., str]:
    """Merge a sweep, export its batch and submit the script; return the batch's name."""
    sandbox.write("code/train.py", PROGRAM)
    sandbox.commit("Write the program")

    def submitted(trials: int, parallelism: int) -> str:
        batch = sandbox.merged(xs=", ".join(map(str, range(trials))), parallelism=parallelism)
        answer(
            export,
            workspace=sandbox.workspace,
            foreign="slurm",
            name="peak",
            output=sandbox.root / "peak.sbatch",
        )
        slurm.run("sbatch", "peak.sbatch", cwd=sandbox.root)
        return batch

    return submitted


def results(sandbox: Sandbox) -> Path:
    return sandbox.root / ".sweepledger/results"


def summary(sandbox: Sandbox) -> list[dict[str, str]]:
    text = sandbox.git("show", "HEAD:results/peak/summary.csv")
    return list(csv.DictReader(text.splitlines()))


def records(sandbox: Sandbox, batch: str) -> list[Path]:
    return sorted((results(sandbox) / batch).glob("*/*.json"))


def wait_for(what: str, condition: Callable[[], object], seconds: float = FEW_SECONDS) -> None:
    until(what, condition, seconds=seconds, pause=0.5)


def launcher_processes(sandbox: Sandbox) -> list[int]:
    wanted = str(sandbox.root / ".sweepledger/jobs")
    lines = captured(["ps", "-ewwo", "pid,args"], check=True).stdout
    return [int(line.split()[0]) for line in lines.splitlines() if wanted in line and "/launch.py" in line]


def test_an_array_records_each_trial_once(sandbox: Sandbox, slurm: Slurm, submit: Callable[..., str]) -> None:
    batch = submit(MANY, 12)
    (stored,) = batches.in_commit(sandbox.workspace.repository, "HEAD")
    ids = [trial.id for trial in stored.trials]
    chance = random.Random(5)  # noqa: S311 - which processes are killed

    wait_for("a third has ended", lambda: len(records(sandbox, batch)) > MANY // 3, ARRAY_SECONDS)
    slurm.run("scontrol", "update", f"NodeName={NODES[1]}", "State=DRAIN", "Reason=test")
    for job in slurm.queue("--states=RUNNING", f"--nodelist={NODES[1]}", "--format=%i"):
        captured(["scontrol", "requeue", job], env=slurm.environment)
    killed = 0
    while killed < 5:
        assert slurm.queue(), f"the array ended after {killed} of 5 jobs were killed"
        running = launcher_processes(sandbox)
        with contextlib.suppress(ProcessLookupError):  # it may have ended in the meantime
            for pid in chance.sample(running, min(1, len(running))):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        time.sleep(0.5)
    wait_for("the array has ended", lambda: not slurm.queue(), ARRAY_SECONDS)
    slurm.run("scontrol", "update", f"NodeName={NODES[1]}", "State=RESUME")

    run_sweep("cluster", "collect", cwd=sandbox.root)

    rows = summary(sandbox)
    assert Counter(row["status"] for row in rows) == {"ok": MANY}
    assert [row["trial"] for row in rows] == ids, "the ids are those of the table, as in a cluster"
    assert len(records(sandbox, batch)) == MANY, "each trial left one record"
    assert {json.loads(path.read_text())["trial"] for path in records(sandbox, batch)} == set(ids)


def test_killed_jobs_are_retried(sandbox: Sandbox, slurm: Slurm, submit: Callable[..., str]) -> None:
    hold = sandbox.root / "hold"
    hold.touch()
    batch = submit(4, 2)
    wait_for("two trials run", lambda: len(launcher_processes(sandbox)) == 2)

    os.kill(launcher_processes(sandbox)[0], signal.SIGKILL)

    def starts() -> int:
        return len(list((results(sandbox) / batch).glob("*/starts")))

    wait_for("it is started again", lambda: len(launcher_processes(sandbox)) == 2 and starts() == 2)
    slurm.run("scancel", "--name", batch)
    wait_for("the array is gone", lambda: not slurm.queue())

    assert not records(sandbox, batch), "what Slurm ends is no failure of a trial"
    hold.unlink()
    slurm.run("sbatch", "peak.sbatch", cwd=sandbox.root)
    wait_for("the array has ended", lambda: not slurm.queue())
    done = run_sweep("cluster", "collect", cwd=sandbox.root)
    assert f"recorded {batch}" in done.stdout
    assert [row["status"] for row in summary(sandbox)] == ["ok"] * 4
