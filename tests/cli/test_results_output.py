"""What `show`, `results`, `status` and `log` look like to a person."""

import io
import json
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from generator.cli.show import kept, tallies
from generator.cli.values import assignment, value
from generator.commands.collect import Target, collect
from generator.commands.generate import generate
from generator.commands.logs import Logs, Output
from generator.commands.standing import Standing
from generator.commands.status import Tally
from generator.formats.summary import SummaryRow
from generator.repo import batches
from generator.structs.names import SWEEP_NAME_LENGTH
from generator.structs.record import Status
from tests.commands.test_collect import leave
from tests.repository import Sandbox

Run = Callable[..., subprocess.CompletedProcess[str]]

PARAMETERS = """parameters:
  x: {values: [1, 2, 3]}
  bias: {value: 0.5}
"""


def merge(sandbox: Sandbox) -> None:
    generate(sandbox.workspace)
    sandbox.commit("Ask")
    sandbox.push()


def recorded(sandbox: Sandbox, volume: Path, parameters: str = PARAMETERS) -> list[str]:
    """Record three trials: one ok, one failed, one diverged; give their ids."""
    path = sandbox.spec()
    path.write_text(path.read_text().replace(PARAMETERS, parameters))
    merge(sandbox)
    (batch,) = batches.in_work_tree(sandbox.root)
    leave(volume, batch, 0)
    for attempt in (1, 2):
        leave(
            volume, batch, 1, uid=f"u{attempt}", attempt=attempt, status="failed", reason="exit-7", metrics={}
        )
    leave(volume, batch, 2, status="diverged", reason="bad-hyperparameters", metrics={})
    assert collect(Target(sandbox.workspace.repository, None, "main"), volume, {batch.name})
    return [row.trial for row in batch.rows]


def lines(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_a_failed_trial_says_why_and_after_how_many_attempts(
    sandbox: Sandbox, run_sweep: Run, tmp_path: Path
) -> None:
    _, failed, diverged = recorded(sandbox, tmp_path / "volume")

    told = lines(run_sweep("show", failed, cwd=sandbox.root, COLUMNS="250"))

    assert ["status", "failed", "(exit-7)"] in told
    assert ["attempts", "2"] in told
    assert ["status", "diverged", "(bad-hyperparameters)"] in lines(
        run_sweep("show", diverged, cwd=sandbox.root, COLUMNS="250")
    )
    data = json.loads(run_sweep("show", failed, "--format", "json", cwd=sandbox.root).stdout)["data"]
    assert (data["reason"], data["attempts"]) == ("exit-7", 2)


def test_names_are_whole_on_a_narrow_terminal_and_what_is_long_is_folded(
    sandbox: Sandbox, run_sweep: Run, tmp_path: Path
) -> None:
    ok, *_ = recorded(sandbox, tmp_path / "volume")

    told = run_sweep("show", ok, cwd=sandbox.root, COLUMNS="60").stdout

    names = [line.split()[0] for line in told.splitlines() if not line.startswith(" ")]
    assert names[:4] == ["trial", "values", "status", "attempts"]
    assert {"spec", "code", "asked", "generated", "recorded"} <= {*names}


def test_an_attempt_that_printed_nothing_is_named() -> None:
    silent, loud = Output("u1", "", ""), Output("u2", "x=1\n", "")

    told = [str(part) for part in kept(Logs("t0123456789a", "peak-b1-00000000", (silent, loud)))]

    assert told == ["-- u1 printed nothing", "-- u2 stdout", "x=1"]


def test_a_trial_that_failed_is_shown_with_what_its_last_attempt_says(
    sandbox: Sandbox, run_sweep: Run, tmp_path: Path
) -> None:
    sandbox.spec()
    merge(sandbox)
    (batch,) = batches.in_work_tree(sandbox.root)
    volume, failed = tmp_path / "volume", {"status": "failed", "reason": "exit-1", "metrics": {}}
    for attempt, error in ((1, "the first"), (2, "no number \x1b[31mscore")):
        leave(volume, batch, 0, uid=f"u{attempt}", attempt=attempt, details={"error": error}, **failed)
    leave(volume, batch, 1, details={"error": "nothing was wrong"})
    leave(volume, batch, 2, details={"error": ["a list"]}, **failed)
    assert collect(Target(sandbox.workspace.repository, None, "main"), volume, {batch.name})

    shown = [
        [line for line in lines(run_sweep("show", row.trial, cwd=sandbox.root)) if line[0] == "why"]
        for row in batch.rows
    ]

    assert shown == [[["why", "no", "number", "�[31mscore"]], [], []]
    told = run_sweep("show", batch.rows[0].trial, "--format", "json", cwd=sandbox.root)
    assert json.loads(told.stdout)["data"]["said"] == "no number \x1b[31mscore"


def test_results_say_why_trials_failed(sandbox: Sandbox, run_sweep: Run, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "volume")

    head, _, *rest = lines(run_sweep("results", "peak", cwd=sandbox.root, COLUMNS="250"))

    assert head[:3] == ["trial", "status", "reason"]
    assert {row[3] for row in rest} == {"exit-7", "bad-hyperparameters"}


def test_no_two_columns_have_one_name(sandbox: Sandbox, run_sweep: Run, tmp_path: Path) -> None:
    names = ("seed", "seconds", "status", "reason", "batch", "score", "x")
    zipped = "".join(f"  {name}: {{values: [1, 2, 3]}}\n" for name in names)
    recorded(sandbox, tmp_path / "volume", f"parameters:\n{zipped}zip: [[{', '.join(names)}]]\n")

    head, *_ = lines(run_sweep("results", "peak", cwd=sandbox.root, COLUMNS="250"))

    clashing = [f"params.{name}" for name in names[:-1]]
    assert head == ["trial", "status", "reason", "score", *clashing, "x", "seconds"]


def test_absent_and_empty_are_told_apart_and_truth_is_shown_as_yaml_has_it(
    sandbox: Sandbox, run_sweep: Run, tmp_path: Path
) -> None:
    listed = 'method: list\nassignments: [{a: "", b: true}, {b: null}, {a: "true", b: 1}]\n'
    path = sandbox.spec()
    path.write_text(path.read_text().replace("method: grid\n", listed).replace(PARAMETERS, ""))
    merge(sandbox)
    (batch,) = batches.in_work_tree(sandbox.root)
    for index in range(3):
        leave(tmp_path / "volume", batch, index, metrics={"score": -index})
    assert collect(Target(sandbox.workspace.repository, None, "main"), tmp_path / "volume", {batch.name})

    _, *rows = lines(run_sweep("results", "peak", cwd=sandbox.root, COLUMNS="250"))

    assert [row[3:-1] for row in rows] == [['""', "true"], ["null"], ['"true"', "1"]]
    shown = lines(run_sweep("show", batch.rows[0].trial, cwd=sandbox.root, COLUMNS="250"))
    assert ["values", 'a=""', "b=true"] in shown


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (True, "true"),
        (None, "null"),
        ("", '""'),
        ("True", '"True"'),
        ("~", '"~"'),
        ("1e-4", '"1e-4"'),
        ("adam", "adam"),
        (1.0, "1"),
        ([1, True, None, "a"], '[1,true,null,"a"]'),
    ],
    ids=repr,
)
def test_a_value_is_shown_as_what_it_is(found: object, told: str) -> None:
    assert value(found) == told  # type: ignore[arg-type]
    assert assignment({"x": found}) == f"x={told}"  # type: ignore[dict-item]


def test_a_sweep_is_asked_for_by_name_or_by_spec(sandbox: Sandbox, run_sweep: Run, tmp_path: Path) -> None:
    trial, *_ = recorded(sandbox, tmp_path / "volume")

    def told(*arguments: str, cwd: Path = sandbox.root) -> str:
        done = run_sweep(*arguments, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for command in ("status", "results", "log"):
        assert told(command, "sweeps/peak.yaml") == told(command, "peak")
    assert told("results", "peak.yaml", cwd=sandbox.root / "sweeps") == told("results", "peak")
    assert told("show", f"sweeps/peak.yaml/{trial}") == told("show", f"peak/{trial}")
    found = json.loads(told("results", "sweeps/peak.yaml", "--format", "json"))["data"]
    assert found["sweep"] == "peak"


def test_planned_trials_have_a_column_where_there_are_any(sandbox: Sandbox, run_sweep: Run) -> None:
    sandbox.spec()
    assert run_sweep("generate", cwd=sandbox.root).returncode == 0

    head, row = lines(run_sweep("status", cwd=sandbox.root, COLUMNS="250"))

    assert dict(zip(head, row, strict=False)) | {"trials": "3", "planned": "3", "missing": "0"} == dict(
        zip(head, row, strict=False)
    )
    sandbox.commit("Ask")
    assert lines(run_sweep("status", cwd=sandbox.root, COLUMNS="250")) == [head, row]
    sandbox.push()
    head, row = lines(run_sweep("status", cwd=sandbox.root, COLUMNS="250"))
    assert "planned" not in head
    assert (row[head.index("pending")], row[head.index("missing")]) == ("3", "0")


def test_a_sweep_that_nobody_committed_has_no_story_yet(sandbox: Sandbox, run_sweep: Run) -> None:
    sandbox.spec()

    done = run_sweep("log", "peak", cwd=sandbox.root)

    assert (done.returncode, done.stdout) == (0, "git holds nothing of peak yet\n")


MANY = {
    Standing.RUNNING: 3,
    Standing.OK: 80,
    Standing.DIVERGED: 2,
    Standing.FAILED: 11,
    Standing.CANCELLED: 4,
}


def a_row() -> SummaryRow:
    nothing = (None, None, None, "c" * 40, None, None, None, None)
    head = ("t0123456789a", "lr-b1-3f9a1c2e", 0, 0, True, Status.OK, None, 1, "d" * 64)
    return SummaryRow(*head, {}, {}, *nothing)


def a_tally(name: str, counts: dict[Standing, int] = MANY) -> Tally:
    row = replace(a_row(), metrics={"accuracy": 0.987654})
    active = (f"{name}-b1-3f9a1c2e", f"{name}-b2-00000000")
    return Tally(name, 2, active, Counter(counts), "accuracy", row)


def at(width: int, *found: Tally) -> list[str]:
    console = Console(width=width, file=io.StringIO(), soft_wrap=True)
    for one in tallies(found):
        console.print(one)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("name", ["lr", "a" * SWEEP_NAME_LENGTH])
def test_at_eighty_columns_headings_and_words_of_the_status_are_whole(name: str) -> None:
    head, *rows = at(80, a_tally(name))

    assert head.split() == ["sweep", "trials", "best", "active"]
    assert max(map(len, (head, *rows))) <= 80
    said = (
        f"{name} 100: 3 running, 80 ok, 2 diverged, 11 failed, 4 cancelled accuracy 0.987654 (t0123456789a) 2"
    )
    assert sorted(" ".join(rows).split()) == sorted(said.split())


def test_where_there_is_room_the_status_has_a_column_a_standing_and_names_what_is_active() -> None:
    wide, row = at(160, a_tally("lr"))
    narrower, numbered = at(120, a_tally("lr"))

    headings = ["running", "ok", "diverged", "failed", "cancelled", "missing", "best", "active"]
    assert wide.split() == narrower.split() == ["sweep", "trials", *headings]
    assert row.endswith("lr-b1-3f9a1c2e, lr-b2-00000000")
    assert numbered.split()[-1] == "2"


def test_a_sweep_of_which_little_is_to_be_said_has_its_columns_at_eighty() -> None:
    head, row = at(80, Tally("lr", 1, ("lr-b1-3f9a1c2e",), Counter({Standing.OK: 3})))

    assert head.split()[2:] == ["running", "ok", "diverged", "failed", "missing", "best", "active"]
    assert row.split() == ["lr", "3", "0", "3", "0", "0", "0", "lr-b1-3f9a1c2e"]


def test_what_only_a_cluster_says_has_room_at_eighty_columns() -> None:
    counts = {Standing.QUEUED: 1, Standing.NODE_LOST: 2, Standing.STALLED: 3, Standing.PENDING: 4}

    head, *rows = at(80, a_tally("lr", {**MANY, **counts}))

    assert head.split() == ["sweep", "trials", "best", "active"]
    assert "2 node lost" in " ".join(" ".join(rows).split())


def test_a_new_spec_with_a_mistake_is_named_by_status_and_the_others_are_counted(
    sandbox: Sandbox, run_sweep: Run, tmp_path: Path
) -> None:
    recorded(sandbox, tmp_path / "volume")
    wrong = sandbox.spec("wrong")
    wrong.write_text(wrong.read_text().replace("goal: maximize", "goal: maximise"))

    told = run_sweep("status", cwd=sandbox.root, COLUMNS="250")
    alone = run_sweep("status", "peak", cwd=sandbox.root)

    assert told.returncode == 1
    assert told.stderr.startswith("sweeps/wrong.yaml:4:29: metric.goal: ")
    assert [line.split()[:2] for line in told.stdout.splitlines()[1:]] == [["peak", "3"], ["wrong", "0"]]
    assert (alone.returncode, alone.stderr) == (0, "")
