"""What a person reads of a search: how far it has come, its size, its front, whom its trials go on from."""

import csv
from pathlib import Path
from typing import Any

from sweepledger.operations.reports.status import sweep_statuses
from sweepledger.operations.repository.batch_records import expected_trials
from sweepledger.operations.rounds.progress import SearchProgress, SearchState
from sweepledger.verbs.cluster.next_ import write_next
from tests.operations.test_collect import leave as leave_one
from tests.repository import Sandbox
from tests.searches import active, begun, hill, record


def come(sandbox: Sandbox, name: str = "hill") -> SearchProgress:
    (result,) = sweep_statuses(sandbox.workspace, name, state=sandbox.root / ".sweepledger")
    assert result.search is not None
    return result.search


def test_the_status_of_a_search_to_its_last_round(sandbox: Sandbox, results: Path) -> None:
    hill(sandbox, rounds=2)
    assert come(sandbox) == SearchProgress(
        "tpe", SearchState.DUE, "`sweep generate hill` writes the first round", 0, 2, 0, 6
    )

    made = sandbox.new_batch()
    assert come(sandbox) == SearchProgress("tpe", SearchState.PROPOSED, f"merge {made.name}", 0, 2, 0, 6)

    sandbox.publish("Ask")
    waits = f"waits for the results of {made.name}"
    assert come(sandbox) == SearchProgress("tpe", SearchState.WAITING, waits, 1, 2, 0, 6)

    record(sandbox, results)
    due = "round 2 is due: `sweep cluster next hill` requests it"
    assert come(sandbox) == SearchProgress("tpe", SearchState.DUE, due, 1, 2, 3, 6)

    (step,) = write_next(sandbox.workspace)
    assert step.generated is not None
    assert step.generated.batch is not None
    merge = f"merge {step.generated.batch.name}"
    assert come(sandbox) == SearchProgress("tpe", SearchState.PROPOSED, merge, 1, 2, 3, 6)

    sandbox.publish("Ask for round 2")
    record(sandbox, results)
    over = "all 2 rounds are recorded"
    assert come(sandbox) == SearchProgress("tpe", SearchState.OVER, over, 2, 2, 6, 6, "rounds")


def test_status_says_who_adds_a_round(sandbox: Sandbox, results: Path) -> None:
    begun(sandbox, settings="next: workflow\n")
    record(sandbox, results)

    assert "round 2 is due: a workflow requests it" in come(sandbox).message


def test_of_rungs_status_knows_the_end_though_no_spec_says_how_many(sandbox: Sandbox, results: Path) -> None:
    rungs = "resource: {parameter: epochs, min: 1, max: 2, eta: 2}\n"
    text = hill(sandbox, method="halving", size=4, rounds=9, more=rungs).read_text()
    sandbox.write("sweeps/hill.yaml", text.replace(", max: 9}", "}"))
    sandbox.write("sweepledger.yaml", "version: 1\nnext: collector\n")
    sandbox.publish_batches("Ask")
    record(sandbox, results)
    record(sandbox, results)

    progress = come(sandbox)

    assert (progress.round, progress.rounds, progress.recorded, progress.max_trials) == (2, 2, 6, 6)
    assert (progress.state, progress.reason) == (SearchState.OVER, "last-rung")


def test_status_validate_and_plan_tell_of_rounds(sandbox: Sandbox) -> None:
    name = begun(sandbox)
    sandbox.spec()

    output = sandbox.sweep("status").stdout
    sizes = sandbox.sweep("validate").stdout.splitlines()

    assert ["hill", "1", "of", "5", "0", "of", "15", "waits", "for", "the", "results", "of", name] in [
        line.split() for line in output.splitlines()
    ]
    assert sizes == [
        "sweeps/hill.yaml: ok, at most 5 rounds of at most 3 trials, 15 in all",
        "sweeps/peak.yaml: ok, 3 trials",
    ]
    text = hill(sandbox, "dale", rounds=5).read_text()
    planned = sandbox.sweep("plan", "dale").stdout
    assert planned.startswith("dale: at most 5 rounds of at most 3 trials, 15 in all: 15 new")
    assert "candidates" not in planned
    assert "-5 … 5, uniform" in planned
    sandbox.write("sweeps/dale.yaml", text.replace("max: 5}", "patience: 2}"))
    assert sandbox.sweep("validate", "dale").stdout == (
        "sweeps/dale.yaml: ok, rounds of 3 trials, until the results end the search\n"
    )


PARETO = "metric: {name: score, goal: maximize}\nother_metrics: [{name: cost, goal: minimize}]\n"


def begun_with_two_metrics(sandbox: Sandbox) -> None:
    """Merge a search by two metrics, each assignment with two seeds, whose collector goes on by itself."""
    text = hill(sandbox, method="nsga2", size=3, rounds=2, more="replicates: 2\n").read_text()
    sandbox.write("sweeps/hill.yaml", text.replace("metric: {name: score, goal: maximize}\n", PARETO))
    sandbox.write("sweepledger.yaml", "version: 1\nnext: collector\n")
    sandbox.publish_batches("Ask for a front")


def recorded(sandbox: Sandbox, results: Path) -> list[dict[str, str]]:
    """Let the round end: the larger x, the better and the dearer; one trial is no better and the dearest."""
    for batch in active(sandbox.workspace):
        for trial in expected_trials(batch):
            x = trial.assignment["x"]
            assert isinstance(x, float)
            metrics = {"score": round(x, 3), "cost": round(x + 10, 3)}
            worse: dict[str, Any] = {"metrics": {"score": -99.0, "cost": 99.0}}
            leave_one(results, batch, trial.index, **(worse if trial.index == 0 else {"metrics": metrics}))
    sandbox.record(results)
    with (sandbox.root / "results/hill/summary.csv").open() as file:
        return list(csv.DictReader(file))


def test_metrics_and_replicates_reach_the_next_round_and_a_front(sandbox: Sandbox, results: Path) -> None:
    begun_with_two_metrics(sandbox)
    rows = recorded(sandbox, results)

    assert [row["replicate"] for row in rows] == ["0", "1"] * 3
    (second,) = active(sandbox.workspace, "HEAD")
    assert (second.lock.round, second.lock.trials) == (2, 6)
    output = sandbox.sweep("log", "hill").stdout
    listed = sandbox.sweep("results", "hill").stdout.splitlines()
    data = sandbox.data("results", "hill")
    (result,) = sweep_statuses(sandbox.workspace, "hill", state=results)
    assert "6/6 trials ok, front of 5 by score, cost, 9.0 s spent" in output
    assert listed[0].split()[:4] == ["trial", "front", "score", "cost"]
    assert [line.split()[2] == "yes" for line in listed[1:]] == [True] * 5 + [False]
    assert [trial["front"] for trial in data["trials"]] == [True] * 5 + [False]
    assert set(result.front) == {trial["trial"] for trial in data["trials"][:5]}
    assert "front of 5 trials" in sandbox.sweep("status").stdout
    subject = sandbox.git("log", "-1", "--format=%s").strip()
    assert subject == "results(hill): 6/6 trials, front of 5 by score, cost"
