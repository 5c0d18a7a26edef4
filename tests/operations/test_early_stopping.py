"""Trials that a rule ends early, and trials that go on from others' checkpoints: real processes, real git."""

import csv
import json
from pathlib import Path

import pytest

from sweepledger.errors import IdleError
from sweepledger.operations.repository.batch_records import expected_trials
from sweepledger.verbs.cluster.next_ import write_next
from sweepledger.verbs.show import trial_details
from tests.operations.test_collect import leave as leave_one
from tests.repository import Sandbox
from tests.searches import SLOPE, active, due

SPEC = """name: peak
method: grid
metric: {name: score, goal: maximize, source: stdout}
early_terminate: {type: median, min_iter: 2}
parameters:
  x: {values: [%s]}
command: [python, code/train.py, "${args}"]
run: {code: {path: code}, resources: {cpu: 1, memory: 256Mi}, parallelism: 2, timeout: 2m}
"""

CLIMB = """import argparse, os
from pathlib import Path
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
own, parent = Path(os.environ["SWEEP_CHECKPOINTS"]), os.environ.get("SWEEP_PARENT")
done = int((Path(parent) / "epochs").read_text()) if parent else 0
print(f"done={done} trained={args.epochs - done} score={args.x * args.epochs}")
(own / "epochs").write_text(str(args.epochs))
"""
RUNGS = """name: climb
method: halving
seed: 7
rounds: {size: 4}
resource: {parameter: epochs, min: 1, max: 4, eta: 2}
metric: {name: score, goal: maximize, source: stdout}
parameters:
  x: {min: 0.0, max: 1.0}
command: [python, code/train.py, "${args}"]
run: {code: {path: code}, resources: {cpu: 1, memory: 256Mi}, timeout: 2m}
"""


def played(sandbox: Sandbox) -> None:
    """Merge what is asked for, and let `sweep cluster local` run it."""
    if sandbox.git("status", "--porcelain", "code"):
        sandbox.commit("Write the code")
    for made in sandbox.generate():
        assert made.batch is not None
    sandbox.publish("Ask")
    list(sandbox.local())
    sandbox.pull()


def rows(sandbox: Sandbox, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((sandbox.root / f"results/{name}/summary.csv").read_text().splitlines()))


def launches(sandbox: Sandbox) -> list[dict[str, object]]:
    results = sorted(sandbox.batches(), key=lambda batch: batch.lock.number)
    return [json.loads(batch.tree["launch.json"]) for batch in results]


@pytest.fixture
def measured(sandbox: Sandbox) -> Sandbox:
    """A sweep whose first batch has left three whole curves."""
    sandbox.write("code/train.py", SLOPE)
    sandbox.write("sweeps/peak.yaml", SPEC % "1, 2, 3")
    played(sandbox)
    return sandbox


def test_the_first_batch_is_the_measure_of_the_next_which_ends_what_falls_behind(measured: Sandbox) -> None:
    measured.write("sweeps/peak.yaml", SPEC % "1, 2, 3, -1, 4")

    played(measured)

    first, second = launches(measured)
    assert "stop" not in first
    assert second["stop"] == [
        {"goal": "maximize", "rule": "median", "thresholds": [[2, 4.0], [3, 6.0], [4, 8.0]], "value": "best"}
    ]
    result = {
        row["params.x"]: (row["status"], row["reason"], row["metrics.score"])
        for row in rows(measured, "peak")
    }
    assert result["-1"] == ("pruned", "median", "-2")
    assert result["4"] == ("ok", "", "16")
    text = (measured.root / "results/peak/README.md").read_text()
    assert "- 1 trial stopped by the rule `median`\n" in text
    assert "4 ok, 0 diverged, 1 pruned, 0 failed" in text
    assert "figures/curves.svg" in text
    (again,) = measured.generate()
    assert again.batch is None, "what was pruned is known"
    with pytest.raises(IdleError):
        measured.retry()


def test_a_rule_compares_the_curve_of_another_metric_and_the_objective_is_ranked(sandbox: Sandbox) -> None:
    sandbox.write("code/train.py", SLOPE.replace(" score=", " growth=") + "print(f'score={10 - x}')\n")
    spec = SPEC.replace("source: stdout", "source: stdout, curve: growth")
    sandbox.write("sweeps/peak.yaml", spec % "1, 2, 3")
    played(sandbox)
    sandbox.write("sweeps/peak.yaml", spec % "1, 2, 3, -1, 4")

    played(sandbox)

    ends = {row["params.x"]: (row["status"], row["metrics.score"]) for row in rows(sandbox, "peak")}
    expected = {"1": ("ok", "9"), "2": ("ok", "8"), "3": ("ok", "7"), "-1": ("pruned", ""), "4": ("ok", "6")}
    assert ends == expected
    curves = (sandbox.root / "results/peak/figures/curves.svg").read_text()
    assert "growth over the steps" in curves
    kept = {
        row["params.x"]: trial_details(sandbox.workspace, row["trial"]).as_data()["curves"]
        for row in rows(sandbox, "peak")
    }
    assert {x: list(each) for x, each in kept.items()} == {x: ["growth"] for x in ends}
    assert sandbox.verify().sweeps[0].differences == ()


def test_the_thresholds_are_what_everybody_works_out_from_the_same_commit(measured: Sandbox) -> None:
    measured.write("sweeps/peak.yaml", SPEC % "1, 2, 3, -1, 4")
    made = measured.new_batch()
    measured.commit("Ask")
    base = measured.git("rev-parse", "HEAD~1").strip()

    problems = measured.check(base=base).problems
    assert {problem.code for problem in problems} == {"early-stop-alone"}, "the sweep has no rounds"
    path = measured.root / "overlays/active" / made.name / "launch.json"
    path.write_text(path.read_text().replace("4.0", "3.0", 1))
    measured.commit("Be kinder")

    assert {problem.code for problem in measured.check(base=base).problems} == {"batch-forged"}


def test_a_promoted_trial_goes_on_from_its_own_last_checkpoint(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write("sweepledger.yaml", "version: 1\nnext: collector\n")
    sandbox.write("code/train.py", CLIMB)
    sandbox.write("sweeps/climb.yaml", RUNGS)

    played(sandbox)

    results = rows(sandbox, "climb")
    assert [(row["params.epochs"], row["metrics.done"], row["metrics.trained"]) for row in results] == [
        *[("1", "0", "1")] * 4,
        *[("2", "1", "1")] * 2,
        ("4", "2", "2"),
    ]
    by_id = {row["trial"]: row for row in results}
    assert [row["params.x"] for row in results[4:]] == [
        by_id[row["parent"]]["params.x"] for row in results[4:]
    ]
    kept = sorted((tmp_path / "state/results").glob("*/*/checkpoints/epochs"))
    assert len(kept) == 7
    assert sandbox.check().problems == ()


def test_a_promoted_trial_that_begins_anew_is_checked_like_any_other(sandbox: Sandbox, results: Path) -> None:
    sandbox.write("sweepledger.yaml", "version: 1\nresults: {store: api}\n")
    sandbox.write("code/train.py", CLIMB)
    sandbox.write("sweeps/climb.yaml", RUNGS.replace("eta: 2}", "eta: 2, continues: false}"))
    sandbox.commit("Write the code")
    sandbox.publish_batches("Ask")
    (first,) = active(sandbox.workspace)
    for trial in expected_trials(first):
        leave_one(results, first, trial.index, metrics={"score": float(str(trial.assignment["x"]))})
    sandbox.record(results, {first.name})

    (step,) = write_next(sandbox.workspace, ["climb"])
    sandbox.commit("Promote")

    lock = due(step).batch.lock
    assert (len(lock.parents), lock.restarts) == (2, True)
    assert sandbox.check().problems == ()
