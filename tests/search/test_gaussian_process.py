"""Rounds of bayes by egobox: what its model is told, and that spaces of every kind fit it."""

from collections.abc import Mapping
from typing import Any

from sweepledger.search.adaptive import Observation, Round
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Sweep
from tests.search.searches import a_search, an_observation, history, searched

BOWL = {"x": {"min": -5.0, "max": 5.0}, "y": {"min": -5.0, "max": 5.0}}

CONDITIONAL: dict[str, Any] = {
    "optimizer": {"values": ["adam", "sgd"]},
    "rate": {"min": 1e-6, "max": 1.0, "distribution": "log_uniform_values"},
    "beta": {"min": 0.5, "max": 0.999, "when": {"optimizer": "adam"}},
    "momentum": {"min": 0.0, "max": 0.99, "when": {"optimizer": "sgd"}},
    "depth": {"min": 1, "max": 12, "when": {"optimizer": "sgd"}},
}


def bowl(at: Mapping[str, Any]) -> float:
    return float((at["x"] - 1) ** 2 + (at["y"] + 2) ** 2)


def a_bowl(**changes: Any) -> Sweep:
    return a_search(**{"method": "bayes", "parameters": BOWL, "rounds": {"size": 2, "max": 99}, **changes})


def best(trials: list[Observation]) -> float:
    return min(trial.values[0] for trial in trials if trial.values)


def drawn(sweep: Sweep, known: list[Observation], **more: Any) -> Round:
    outcome = next_round(sweep, known, number=50, **more)
    assert isinstance(outcome, Round)
    return outcome


def test_a_few_rounds_find_the_bottom_of_a_bowl() -> None:
    trials = searched(a_bowl(), bowl, 12)

    assert len(trials) == 24
    assert best(trials) < 1e-3


def test_a_metric_is_maximized_as_its_opposite_is_minimized() -> None:
    sweep = a_bowl(metric={"name": "score", "goal": "maximize"})

    trials = searched(sweep, lambda at: -bowl(at), 12)

    assert [trial.configuration for trial in trials] == [
        trial.configuration for trial in searched(a_bowl(), bowl, 12)
    ]


def test_pending_configurations_are_avoided() -> None:
    sweep = a_bowl(rounds={"size": 1, "max": 99, "ahead": 8})
    known = history(sweep, bowl, 24)
    alone = drawn(sweep, known).suggestions[0].configuration

    beside = drawn(sweep, known, pending=[an_observation(alone, None, status=Status.MISSING, round=49)])

    (other,) = beside.suggestions
    assert abs(other.configuration["x"] - alone["x"]) + abs(other.configuration["y"] - alone["y"]) > 0.1  # type: ignore[operator]


def test_a_trial_that_was_stopped_early_is_no_better_than_the_worst_that_was_not() -> None:
    sweep = a_bowl()
    known = history(sweep, bowl, 23)
    stopped, worst = ({"x": 1.0, "y": -2.0}, max(trial.values or (0.0,) for trial in known))

    early = drawn(sweep, [*known, an_observation(stopped, 0.0, status=Status.PRUNED)])

    assert early == drawn(sweep, [*known, an_observation(stopped, worst)])


def test_conditions_constraints_and_small_spaces_are_searched() -> None:
    sweep = a_bowl(parameters=CONDITIONAL, constraints=["rate < 0.01"])

    def loss(at: Mapping[str, Any]) -> float:
        kind = 0.0 if at["optimizer"] == "sgd" else 1.0
        return float(at["rate"] + kind + abs(at.get("depth", 9) - 3))

    trials = searched(sweep, loss, 12)

    assert len(trials) == 24
    assert all(float(trial.configuration["rate"]) < 0.01 for trial in trials)  # type: ignore[arg-type]
    assert best(trials) < 1.1
    grid = a_bowl(parameters={"a": {"values": [1, 2, 3, 4]}, "b": {"values": ["x", "y", "z"]}})
    assert len(searched(grid, lambda at: float(at["a"]), 99)) == 12
