"""A plan of a search prices all of its rounds: the merge of its spec approves them."""

from pathlib import Path

import pytest

from sweepledger.plan.review import review_as_data
from tests.repository import Sandbox
from tests.searches import begun, hill, record


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
