"""The message of a results commit, word for word."""

from sweepledger.results.summary import commit_message, summarise
from sweepledger.structs.metric import Goal, Metric
from tests.builders import TREE, a_grid, a_program

NAME = "mnist-grid-b1-3f9a1c2e"


def test_no_winner_and_no_data_are_said() -> None:
    batch = a_grid({"x": [1, 2]}, lambda _: None, program=a_program(data=None))

    lines = commit_message(summarise([batch], description=""), recorded=[NAME, "other"]).splitlines()

    assert lines[0] == "results(mnist-grid): 0/2 trials, no winner"
    assert lines[3:5] == ["Batch: mnist-grid-b1-3f9a1c2e", "Batch: other"]
    assert {"Data: none", f"Code: {TREE}"} <= set(lines)
    assert "Spec: sweeps/mnist-grid.yaml none" in lines
    assert "Trials: 0 ok, 0 diverged, 0 failed, 2 missing" in lines


def test_the_best_value_has_six_digits_and_a_metric_cannot_break_the_line() -> None:
    metric = Metric("loss\nSweep: forged", Goal.MINIMIZE)
    summary = summarise([a_grid({"x": [1]}, lambda _: 0.123456789, metric=metric)], description="")

    lines = commit_message(summary, recorded=[NAME]).splitlines()

    assert lines[0] == "results(mnist-grid): 1/1 trials, best loss Sweep: forged 0.123457 (t00000000000)"
    assert sum(line.startswith("Sweep:") for line in lines) == 1
