"""The engine is killed and started again: everything is done once, nothing is lost, no process stays."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from sweepledger.engine.local.events import JobCondition
from sweepledger.engine.local.store import batch_conditions
from sweepledger.structs.record import Status
from tests.engine.batches import Machine, indexed

DRIVER = Path(__file__).parent / "driver.py"
WORDS = ["setsid", "orphan", "fail-first:1", "sleep:0.1", "exit:42", ""]


def start(machine: Machine, *words: str, die_at: str = "never") -> subprocess.Popen[bytes]:
    command = [sys.executable, str(DRIVER), str(machine.root), "1", die_at, *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def finish(machine: Machine, *words: str, die_at: str = "never") -> int:
    with start(machine, *words, die_at=die_at) as engine:
        _, output = engine.communicate(timeout=150)
    assert engine.returncode in {0, -signal.SIGKILL}, output.decode()
    return engine.returncode


def results(machine: Machine, words: list[str]) -> list[list[Status]]:
    made = indexed(words)
    return [
        [record.status for record in machine.records(made, index) if record.status.is_final]
        for index in range(len(words))
    ]


def assert_all_was_done_once(machine: Machine, words: list[str]) -> None:
    expected = [[Status.DIVERGED if "42" in word else Status.OK] for word in words]
    assert results(machine, words) == expected
    assert [note for note in machine.spy(indexed(words)) if note[0] == "again"] == []
    assert set(batch_conditions(machine.state).values()) == {
        JobCondition.FAILED if any("42" in word for word in words) else JobCondition.COMPLETE
    }


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "die_at",
    [
        "store.save_jobs:1",  # a Job is created, and nobody wrote that down
        "pods.settle_pod:1",  # a record is there, and nobody read it
        *(
            pytest.param(step, marks=pytest.mark.full_suite("more kills"))
            for step in (
                "node.Node.wait:1",  # pods have just been started
                "store.save_jobs:2",  # all records are there, and the Job's end is not
                "pod_folders.write_files:1",
                "pods.prepare_launch:2",
                "node.Node.start:3",
                "pods.settle_pod:4",
                "pod_folders.remove_pod:2",
            )
        ),
    ],
)
def test_an_engine_killed_at_any_step_is_continued_by_the_next(machine: Machine, die_at: str) -> None:
    assert finish(machine, *WORDS, die_at=die_at) == -signal.SIGKILL

    assert finish(machine, *WORDS) == 0

    assert_all_was_done_once(machine, WORDS)


@pytest.mark.full_suite("more kills")
def test_an_engine_killed_at_ten_moments_loses_nothing_and_repeats_no_result(machine: Machine) -> None:
    moments = random.Random(20)  # noqa: S311 - no secret
    # One pod waits until the kills are over: however late each is, it finds something that runs.
    words = ["polite wait-for:go", *["polite sleep:0.3 orphan"] * 20, *WORDS]
    kills = 0
    for _ in range(10):
        with start(machine, *words) as engine:
            before = len(machine.spy(indexed(words)))
            give_up = time.monotonic() + 10
            while engine.poll() is None and time.monotonic() < give_up:
                if len(machine.spy(indexed(words))) > before:
                    break
                time.sleep(0.01)
            time.sleep(moments.uniform(0.0, 0.5))
            engine.kill()
            kills += engine.wait() != 0

    (machine.state / "results" / indexed(words).name / "go").touch()
    assert finish(machine, *words) == 0

    assert kills == 10
    assert_all_was_done_once(machine, words)
    failures = Counter(index for index in range(len(words)) for _ in machine.records(indexed(words), index))
    assert max(failures.values()) == 2  # the one that fails first: no kill counted as an attempt


def test_an_engine_killed_while_pruning_prunes_after_a_restart(machine: Machine) -> None:
    with start(machine, "", "setsid sleep:300") as engine:
        while len(machine.spy(indexed([""]))) < 2 or not machine.records(indexed([""]), 0):
            assert engine.poll() is None
            time.sleep(0.01)
        engine.kill()

    assert finish(machine, die_at="pod_folders.remove_files:1") == -signal.SIGKILL
    assert set(batch_conditions(machine.state)) == {indexed([""]).name}
    assert finish(machine) == 0

    assert batch_conditions(machine.state) == {}
    assert machine.processes() == []
    assert len(machine.records(indexed([""]), 0)) == 1


def test_pods_of_a_killed_engine_end_by_themselves(machine: Machine) -> None:
    with start(machine, "setsid orphan stubborn sleep:300") as engine:
        while not machine.spy(indexed([""])):
            time.sleep(0.01)
        engine.kill()

    give_up = time.monotonic() + 120
    while machine.processes():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_a_new_engine_kills_processes_without_a_supervisor(machine: Machine) -> None:
    words = "setsid orphan make:left sleep:300"
    made = indexed([words])
    with start(machine, words) as engine:
        while not (machine.state / "results" / made.name / "left").exists():
            time.sleep(0.01)
        # Warden and engine stop at once, so that nobody is there to clean up.
        launcher = machine.spy(made)[0][2]
        supervisor = int(Path(f"/proc/{launcher}/stat").read_text().split(") ")[1].split()[1])
        for pid in (engine.pid, supervisor):
            subprocess.run(["kill", "-STOP", str(pid)], check=True)
        for pid in (supervisor, engine.pid):
            subprocess.run(["kill", "-KILL", str(pid)], check=True)
    assert machine.processes() != []

    with machine.engine() as fresh:
        assert fresh.leftovers_killed > 0

    assert machine.processes() == []
