"""What `show`, `results`, `status` and `log` look like to a person."""

import io
import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.operations.reports.outputs import AttemptOutput, Logs
from sweepledger.operations.reports.recorded_status import BestValue
from sweepledger.operations.reports.status import SweepStatus, TrialState
from sweepledger.operations.repository.workspace import Target
from sweepledger.structs.names import MAX_SWEEP_NAME_LENGTH
from sweepledger.verbs.logs import logs_text
from sweepledger.verbs.status import status_table
from tests.command_line import run_sweep
from tests.operations.test_collect import leave
from tests.repository import Sandbox, replace_in

PARAMETERS = """parameters:
  x: {values: [1, 2, 3]}
  bias: {value: 0.5}
"""


def merge(sandbox: Sandbox) -> None:
    sandbox.publish_batches("Ask")


def recorded(sandbox: Sandbox, volume: Path, parameters: str = PARAMETERS) -> list[str]:
    """Record three trials: one ok, one failed, one diverged; give their ids."""
    replace_in(sandbox.spec(), PARAMETERS, parameters)
    merge(sandbox)
    (batch,) = sandbox.batches()
    leave(volume, batch, 0)
    for attempt in (1, 2):
        leave(
            volume, batch, 1, uid=f"u{attempt}", attempt=attempt, status="failed", reason="exit-7", metrics={}
        )
    leave(volume, batch, 2, status="diverged", reason="bad-hyperparameters", metrics={})
    assert commit_results(Target(sandbox.workspace.repository, None, "main"), on_volume(volume), {batch.name})
    return [row.trial for row in batch.rows]


def lines(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_a_failed_trial_says_why_and_after_how_many_attempts(sandbox: Sandbox, tmp_path: Path) -> None:
    _, failed, diverged = recorded(sandbox, tmp_path / "volume")

    output = lines(sandbox.sweep("show", failed, COLUMNS="250"))

    assert ["status", "failed", "(exit-7)"] in output
    assert ["attempts", "2"] in output
    assert ["status", "diverged", "(bad-hyperparameters)"] in lines(
        sandbox.sweep("show", diverged, COLUMNS="250")
    )
    data = sandbox.data("show", failed)
    assert (data["reason"], data["attempts"]) == ("exit-7", 2)


def test_an_attempt_that_printed_nothing_is_named() -> None:
    silent, loud = AttemptOutput("u1", "", ""), AttemptOutput("u2", "x=1\n", "")

    output = [str(part) for part in logs_text(Logs("t0123456789a", "peak-b1-00000000", (silent, loud)))]

    assert output == ["-- u1 printed nothing", "-- u2 stdout", "x=1"]


def test_a_failed_trial_shows_the_error_of_its_last_attempt(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.spec()
    merge(sandbox)
    (batch,) = sandbox.batches()
    volume, failed = tmp_path / "volume", {"status": "failed", "reason": "exit-1", "metrics": {}}
    for attempt, error in ((1, "the first"), (2, "no number \x1b[31mscore")):
        leave(volume, batch, 0, uid=f"u{attempt}", attempt=attempt, details={"error": error}, **failed)
    leave(volume, batch, 1, details={"error": "nothing was wrong"})
    leave(volume, batch, 2, details={"error": ["a list"]}, **failed)
    assert commit_results(Target(sandbox.workspace.repository, None, "main"), on_volume(volume), {batch.name})

    shown = [
        [line for line in lines(sandbox.sweep("show", row.trial)) if line[0] == "error"] for row in batch.rows
    ]

    assert shown == [[["error", "no", "number", r"\x1b[31mscore"]], [], []]
    output = sandbox.sweep("show", batch.rows[0].trial, "--format", "json")
    assert json.loads(output.stdout)["data"]["message"] == "no number \x1b[31mscore"


def test_no_two_columns_have_the_same_name(sandbox: Sandbox, tmp_path: Path) -> None:
    names = ("seed", "seconds", "status", "reason", "batch", "score", "x")
    zipped = "".join(f"  {name}: {{values: [1, 2, 3]}}\n" for name in names)
    recorded(sandbox, tmp_path / "volume", f"parameters:\n{zipped}zip: [[{', '.join(names)}]]\n")

    head, _, *rest = lines(sandbox.sweep("results", "peak", COLUMNS="250"))

    clashing = [f"params.{name}" for name in names[:-1]]
    assert head == ["trial", "status", "reason", "score", *clashing, "x", "seconds"]
    assert {row[3] for row in rest} == {"exit-7", "bad-hyperparameters"}


def test_absent_and_empty_values_differ_and_booleans_are_yaml(sandbox: Sandbox, tmp_path: Path) -> None:
    listed = 'method: list\nassignments: [{a: "", b: true}, {b: null}, {a: "true", b: 1}]\n'
    path = sandbox.spec()
    replace_in(path, "method: grid\n", listed)
    replace_in(path, PARAMETERS, "")
    merge(sandbox)
    (batch,) = sandbox.batches()
    for index in range(3):
        leave(tmp_path / "volume", batch, index, metrics={"score": -index})
    assert commit_results(
        Target(sandbox.workspace.repository, None, "main"), on_volume(tmp_path / "volume"), {batch.name}
    )

    _, *rows = lines(sandbox.sweep("results", "peak", COLUMNS="250"))

    assert [row[3:-1] for row in rows] == [['""', "true"], ["null"], ['"true"', "1"]]
    shown = lines(sandbox.sweep("show", batch.rows[0].trial, COLUMNS="250"))
    assert ["values", 'a=""', "b=true"] in shown


def test_a_sweep_is_given_by_name_or_by_spec(sandbox: Sandbox, tmp_path: Path) -> None:
    trial, *_ = recorded(sandbox, tmp_path / "volume")

    def output(*arguments: str, cwd: Path = sandbox.root) -> str:
        done = run_sweep(*arguments, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for command in ("status", "results", "log"):
        assert output(command, "sweeps/peak.yaml") == output(command, "peak")
    assert output("results", "peak.yaml", cwd=sandbox.root / "sweeps") == output("results", "peak")
    assert output("show", f"sweeps/peak.yaml/{trial}") == output("show", f"peak/{trial}")
    result = json.loads(output("results", "sweeps/peak.yaml", "--format", "json"))["data"]
    assert result["sweep"] == "peak"


MANY = {
    TrialState.RUNNING: 3,
    TrialState.OK: 80,
    TrialState.DIVERGED: 2,
    TrialState.FAILED: 11,
    TrialState.CANCELLED: 4,
}


def a_tally(name: str, counts: dict[TrialState, int] = MANY) -> SweepStatus:
    best = BestValue("t0123456789a", 0.987654)
    active = (f"{name}-b1-3f9a1c2e", f"{name}-b2-00000000")
    return SweepStatus(name, 2, active, Counter(counts), "accuracy", best)


def at(width: int, *statuses: SweepStatus) -> list[str]:
    console = Console(width=width, file=io.StringIO(), soft_wrap=True)
    for renderable in status_table(statuses):
        console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("name", ["lr", "a" * MAX_SWEEP_NAME_LENGTH])
def test_the_table_of_sweeps_fits_eighty_columns(name: str) -> None:
    head, *rows = at(80, a_tally(name))

    assert head.split() == ["sweep", "trials", "best", "active"]
    assert max(map(len, (head, *rows))) <= 80
    message = (
        f"{name} 100: 3 running, 80 ok, 2 diverged, 11 failed, 4 cancelled accuracy 0.987654 (t0123456789a) 2"
    )
    assert sorted(" ".join(rows).split()) == sorted(message.split())


def test_status_names_a_broken_new_spec_and_counts_the_others(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "volume")
    replace_in(sandbox.spec("wrong"), "goal: maximize", "goal: maximise")

    output = sandbox.sweep("status", COLUMNS="250")
    alone = sandbox.sweep("status", "peak")

    assert output.returncode == 1
    assert output.stderr.startswith("sweeps/wrong.yaml:4:29: metric.goal: ")
    assert [line.split()[:2] for line in output.stdout.splitlines()[1:]] == [["peak", "3"], ["wrong", "0"]]
    assert (alone.returncode, alone.stderr) == (0, "")


def test_a_wide_table_of_sweeps_has_a_column_per_state_and_names_active_batches() -> None:
    wide, row = at(160, a_tally("lr"))
    narrower, numbered = at(120, a_tally("lr"))

    headings = ["running", "ok", "diverged", "failed", "cancelled", "missing", "best", "active"]
    assert wide.split() == narrower.split() == ["sweep", "trials", *headings]
    assert row.endswith("lr-b1-3f9a1c2e, lr-b2-00000000")
    assert numbered.split()[-1] == "2"
