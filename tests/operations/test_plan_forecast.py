"""What `sweep plan` foresees, from what git holds: recorded trials of the program, and the pool's queue."""

from pathlib import Path

import pytest

from sweepledger.operations.verification.batch_audit import SweepAudit
from sweepledger.plan.forecast import DurationSource, Forecast
from sweepledger.plan.review import review_as_data
from tests.builders import present
from tests.operations.recording import record_batch
from tests.repository import Sandbox, append_to
from tests.searches import begun, hill, record

POOL = """version: 1
currency: EUR
pools:
  small: {node: {cpu: 4, memory: 16Gi}, max_nodes: 1, price: 0.6, startup: 1s}
defaults: {pool: small}
"""


def foreseen(sandbox: Sandbox, name: str = "peak") -> Forecast:
    (review,) = sandbox.plan(name).reviews
    assert review.forecast is not None
    return review.forecast


def test_trials_of_the_same_program_in_any_sweep_are_believed(sandbox: Sandbox) -> None:
    record_batch(sandbox, sandbox.merged("first", xs="1, 2, 3, 4"), lambda _: 20.0)
    append_to(sandbox.spec(xs="1, 2, 3, 4"), "  expected_minutes: 1\n")

    forecast = foreseen(sandbox)

    assert (forecast.source, forecast.records) == (DurationSource.RECORDS, 4)
    assert present(forecast.trial_seconds).median == pytest.approx(20, rel=0.1)
    sandbox.publish("Write another program", {"code/train.py": "print('another')\n"})
    sandbox.spec()
    assert foreseen(sandbox).source is DurationSource.UNKNOWN


def test_what_is_active_in_the_pool_comes_first(sandbox: Sandbox) -> None:
    sandbox.publish("Name a pool", {"sweepledger.yaml": POOL})
    record_batch(sandbox, sandbox.merged("first", xs="1, 2, 3, 4"), lambda _: 20.0)
    sandbox.spec(xs="1, 2")
    alone = foreseen(sandbox)
    (sandbox.root / "sweeps/peak.yaml").unlink()
    sandbox.merged("busy", xs="1, 2, 3, 4", parallelism=4)
    sandbox.spec(xs="1, 2")

    behind = foreseen(sandbox)

    assert (alone.ahead, behind.ahead, behind.uncounted) == (0, 1, 0)
    assert present(behind.completion_seconds).high > present(alone.completion_seconds).high
    assert present(behind.money).median == pytest.approx(2 * 20 / 3600 * 0.6 / 4, rel=0.15)


def test_the_best_of_what_is_recorded_is_remarked_on_where_it_lies_at_an_end(sandbox: Sandbox) -> None:
    name = sandbox.merged(xs="1, 2, 3")
    record_batch(sandbox, name, lambda _: 20.0, score=lambda values: float(str(values["x"])))
    files = SweepAudit(sandbox.workspace.repository, "HEAD", "peak").rebuilt_files()
    sandbox.publish("Summarise", {"results/peak/summary.csv": files["summary.csv"].decode()})

    def notes_at_an_end(xs: str) -> list[str]:
        sandbox.spec(xs=xs)
        (review,) = sandbox.plan("peak").reviews
        return [note.text.partition(",")[0] for note in review.notes if note.kind == "best-at-an-end"]

    assert notes_at_an_end("0.5, 1, 2, 3") == ["x=3 of the best trial so far"]
    assert notes_at_an_end("2, 3, 4") == []


def test_before_the_first_round_all_rounds_are_new(sandbox: Sandbox) -> None:
    hill(sandbox, size=3, rounds=5)
    sandbox.commit("Ask for a search")

    (review,) = sandbox.plan().reviews

    assert review.counts.new == 15
    assert review_as_data(review)["search"] == {"size": 3, "trials": 15, "rounds": 5, "ahead": 1}
    assert review.new_cost.trial_hours == 15 / 60
    assert review.new_cost.wall_hours == 5 / 60
    assert review.is_change


def test_recorded_trials_are_not_paid_for_again(sandbox: Sandbox, results: Path) -> None:
    begun(sandbox, size=3, rounds=5)
    record(sandbox, results)

    assert sandbox.plan().unchanged == ("hill",)
    (review,) = sandbox.plan("hill").reviews

    assert (review.counts.new, review.counts.running, review.counts.recorded) == (9, 3, 3)
    assert review_as_data(review)["search"]["rounds"] == 3


@pytest.mark.parametrize(
    ("more", "trials"),
    [("run_cap: 7\n", 7), ("budget: {max_trials: 8}\n", 8), ("replicates: 2\n", 30)],
    ids=["run_cap", "budget", "replicates"],
)
def test_whatever_bounds_the_search_bounds_its_plan(sandbox: Sandbox, more: str, trials: int) -> None:
    hill(sandbox, size=3, rounds=5, more=more)
    sandbox.commit("Ask for a search")

    (review,) = sandbox.plan().reviews

    assert review.counts.new == trials


def test_rungs_are_played_since_each_is_smaller_than_the_one_before(sandbox: Sandbox) -> None:
    text = hill(sandbox, method="halving", size=9, rounds=9).read_text()
    rungs = "rounds: {size: 9}\nresource: {parameter: epochs, min: 1, max: 9, eta: 3}\n"
    text = text.replace("rounds: {size: 9, max: 9}\n", rungs).replace("parallelism: 4", "parallelism: 9")
    sandbox.commit("Ask for a search", {"sweeps/hill.yaml": text})

    (review,) = sandbox.plan().reviews

    assert review_as_data(review)["search"] == {"size": 9, "trials": 9 + 3 + 1, "rounds": 3, "ahead": 1}
