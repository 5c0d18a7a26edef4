"""The main job on a real repository: real git, real kustomize, trials as real processes."""

import csv
import os
import sys
from pathlib import Path

import pytest

from sweepledger.errors import RepositoryError, SpecError
from sweepledger.operations.collection.results_commit import ResultsCommit
from tests.command_line import run_program
from tests.repository import Sandbox, replace_in
from tests.tiers import parameters

ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).with_name("driver.py")

SPY = """
import os as _os
with open(_os.environ["SWEEP_RESULTS"] + "/../../../starts", "a") as _file:
    _file.write(_os.environ["SWEEP_TRIAL_ID"] + "\\n")
"""
"""A line for each start of the user's program, outside its folder: the test looks, the product does not."""

STRAY = """
import subprocess as _subprocess, sys as _sys, time as _time
_STRAY = "import os, time; os.fork() or os.setsid(); time.sleep(300)"
_subprocess.Popen([_sys.executable, "-c", _STRAY], start_new_session=True)
_time.sleep(0.3)
"""
"""Children that leave the process group and the session: nothing of them may stay."""


@pytest.fixture
def ready(sandbox: Sandbox) -> Sandbox:
    """A sandbox whose program tells of every start and leaves stray children behind."""
    return spied(sandbox)


def spied(sandbox: Sandbox) -> Sandbox:
    replace_in(sandbox.root / "code/train.py", "import argparse", f"{SPY}{STRAY}\nimport argparse")
    sandbox.publish("Spy on the program")
    return sandbox


def play(sandbox: Sandbox) -> list[ResultsCommit]:
    return [event for event in sandbox.local() if isinstance(event, ResultsCommit)]


def drive(sandbox: Sandbox, moment: str = "never", count: int = 1) -> int:
    words = (
        str(DRIVER),
        "local",
        str(sandbox.remote),
        str(sandbox.root.parent / "state"),
        moment,
        str(count),
    )
    done = run_program(sys.executable, *words, cwd=ROOT, PYTHONPATH=str(ROOT))
    assert done.returncode in {0, -9}, done.stderr
    return done.returncode


def summary(sandbox: Sandbox, name: str = "peak") -> list[dict[str, str]]:
    sandbox.pull()
    with (sandbox.root / "results" / name / "summary.csv").open() as file:
        return list(csv.DictReader(file))


def without_times(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{k: v for k, v in row.items() if k not in {"seconds", "started", "finished"}} for row in rows]


def starts(sandbox: Sandbox) -> list[str]:
    path = (sandbox.root.parent / "state") / "starts"
    return path.read_text().split() if path.exists() else []


def left_over(sandbox: Sandbox) -> list[str]:
    """Name the processes that carry this sandbox's state folder in their environment."""
    marker = os.fsencode(str(sandbox.root.parent / "state"))
    results = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if marker in path.read_bytes():
                results.append((path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return results


def test_a_merged_sweep_ends_as_one_results_commit_of_the_code_that_it_locked(ready: Sandbox) -> None:
    batch = ready.merged()
    ready.publish("Break the code", {"code/train.py": "raise SystemExit('newer code must not run')\n"})

    (collected,) = play(ready)

    assert collected.batches == (batch,)
    rows = summary(ready)
    expected = [("1", "ok", "-0.5"), ("2", "ok", "0.5"), ("3", "ok", "-0.5")]
    assert [(row["params.x"], row["status"], row["metrics.score"]) for row in rows] == expected
    assert all(row["ran"] == "process" for row in rows)
    changed = ready.git("show", "--format=", "--name-status", "-M100%", "HEAD").split("\n")
    assert (
        f"R100\toverlays/active/{batch}/hyperparams.csv\toverlays/archive/{batch}/hyperparams.csv" in changed
    )
    assert {
        "A\tresults/peak/summary.csv",
        "A\tresults/peak/README.md",
        "A\tresults/peak/figures/trials.svg",
    } <= set(changed)
    assert ready.git("log", "-1", "--format=%s").startswith("results(peak): 3/3 trials, best score 0.5 (t")
    assert left_over(ready) == []


MOMENTS = [
    "Fetching", "Fetched", "Built", "JobCreated", "PodStarted", "PodEnded", "Record", "JobFinished",
    "ResultsCommit", "JobPruned",
]  # fmt: skip
SHORTLY = ("Record", "ResultsCommit")
"""One moment during and one after the trials; the full suite tries the others."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("moment", parameters(MOMENTS, SHORTLY, "more kills"))
def test_killed_at_any_phase_and_started_again_it_finishes_the_same(ready: Sandbox, moment: str) -> None:
    ready.merged()

    assert drive(ready, moment) == -9
    play(ready)

    assert without_times(summary(ready)) == [
        {**row, "status": "ok", "attempts": "1"} for row in without_times(summary(ready))
    ]
    assert [row["metrics.score"] for row in summary(ready)] == ["-0.5", "0.5", "-0.5"]
    assert len(ready.git("log", "--format=%s", "--grep", r"^results(peak)").splitlines()) == 1
    records = list(((ready.root.parent / "state") / "results").glob("*/*/*.json"))
    assert len(records) == 3, "no trial ran again once its result existed"
    assert left_over(ready) == []


def test_a_batch_whose_files_are_not_those_of_its_name_is_refused(sandbox: Sandbox) -> None:
    launch = sandbox.root / "overlays/active" / sandbox.merged() / "launch.json"
    text = launch.read_text()
    launch.write_text(text.replace('"seed_base": 0', '"seed_base": 1'))
    assert launch.read_text() != text
    sandbox.publish("Edit a merged batch")

    with pytest.raises(SpecError) as refused:
        play(sandbox)

    (problem,) = refused.value.problems
    assert (problem.code, problem.file.rpartition("/")[2]) == ("batch-edited", "launch.json")
    assert starts(sandbox) == []


def test_two_engines_never_share_a_state(sandbox: Sandbox) -> None:
    sandbox.merged()
    first = sandbox.local()
    next(first)

    with pytest.raises(RepositoryError, match=f"process {os.getpid()}"):
        next(sandbox.local())

    first.close()  # type: ignore[attr-defined]


def test_a_paused_batch_runs_only_after_it_is_resumed(ready: Sandbox) -> None:
    ready.merged()
    ready.pause(push=True)

    assert play(ready) == []
    assert not (ready.root.parent / "state/starts").exists()

    ready.resume(push=True)
    (pushed,) = play(ready)
    assert len((ready.root.parent / "state/starts").read_text().split()) == 3
    assert pushed.batches
    ready.pull()
    assert ready.active() == []
