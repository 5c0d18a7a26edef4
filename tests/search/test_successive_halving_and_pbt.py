"""Halving, hyperband, asha and pbt: who goes on, with what, and from whom."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from generator.search.adaptive import Finished, Observation, Round, next_round
from generator.structs.adaptive import Resource, brackets
from generator.structs.record import Status
from generator.structs.sweep import Sweep
from generator.structs.values import canonical_json
from tests.search.searches import a_search, an_observation, loss, recorded, searched

EPOCHS = {"parameter": "epochs", "min": 1, "max": 27, "eta": 3}
GOING_ON = ("halving", "hyperband", "asha", "pbt")


def a_climb(method: str, **changes: Any) -> Sweep:
    return a_search(**{"method": method, "rounds": {"size": 27, "max": 9}, "resource": EPOCHS, **changes})


def epochs(trials: Sequence[Observation]) -> list[list[int]]:
    """List what the trials of each round get."""
    found: dict[int, list[int]] = {}
    for one in trials:
        found.setdefault(one.round or 0, []).append(int(str(one.assignment["epochs"])))
    return [sorted(found[number]) for number in sorted(found)]


def values(assignment: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in assignment.items() if name != "epochs"}


def test_halving_lets_a_third_go_on_with_three_times_as_much() -> None:
    trials = searched(a_climb("halving"), loss, 9)

    assert epochs(trials) == [[1] * 27, [3] * 9, [9] * 3, [27]]


def test_the_best_go_on_with_their_own_values_and_name_whom_they_go_on_from() -> None:
    trials = searched(a_climb("halving"), loss, 2)

    first = sorted((one for one in trials if one.round == 1), key=lambda one: one.values or ())
    second = {one.parent: one for one in trials if one.round == 2}
    assert set(second) == {one.id for one in first[:9]}
    assert all(values(second[one.id].assignment) == values(one.assignment) for one in first[:9])


def test_a_search_by_rungs_ends_with_the_last_one() -> None:
    sweep = a_climb("halving")

    found = next_round(sweep, searched(sweep, loss, 4), number=5)

    assert isinstance(found, Finished)
    assert found.reason == "last-rung"


@pytest.mark.parametrize("method", GOING_ON)
def test_what_is_to_be_maximized_goes_on_from_its_largest(method: str) -> None:
    sweep = a_climb(method, metric={"name": "accuracy", "goal": "maximize"})

    trials = searched(sweep, lambda one: -loss(one), 2)

    of_first = {one.id: one.values or () for one in trials if one.round == 1}
    gone = {one.parent for one in trials if one.round == 2 and one.parent}
    assert max(of_first, key=lambda name: of_first[name]) in gone
    assert min(of_first, key=lambda name: of_first[name]) not in gone


@pytest.mark.parametrize("method", GOING_ON)
@pytest.mark.parametrize("status", [Status.FAILED, Status.DIVERGED, Status.MISSING, Status.TIMEOUT])
def test_only_what_is_ok_has_checkpoints_to_go_on_from(method: str, status: Status) -> None:
    sweep = a_climb(method, rounds={"size": 6, "max": 9})
    first = next_round(sweep, (), number=1)
    assert isinstance(first, Round)
    known = recorded(first, loss)
    broken = [an_observation(one.assignment, one.values, status=status) for one in known[:2]]

    found = next_round(sweep, [*broken, *known[2:]], number=2)

    assert isinstance(found, Round)
    assert not {one.parent for one in found.suggestions} & {one.id for one in broken}


def test_hyperbands_brackets_are_those_of_the_paper() -> None:
    paper = [(27, 1), (12, 3), (6, 9), (4, 27)]

    found = brackets(27, Resource("epochs", 1, 27, 3))

    assert [(count, 3**rung) for rung, count in found] == paper


def test_hyperband_takes_all_brackets_a_rung_further_in_each_round() -> None:
    trials = searched(a_climb("hyperband"), loss, 9)

    assert epochs(trials) == [
        [1] * 27 + [3] * 12 + [9] * 6 + [27] * 4,
        [3] * 9 + [9] * 4 + [27] * 2,
        [9] * 3 + [27],
        [27],
    ]


def test_asha_fills_a_round_with_what_can_go_on_and_then_with_something_new() -> None:
    trials = searched(a_climb("asha", rounds={"size": 6, "max": 9}), loss, 3)

    assert epochs(trials) == [[1] * 6, [1] * 4 + [3] * 2, [1] * 5 + [3]]
    assert len({one.parent for one in trials if one.parent}) == 3


def test_a_population_trains_on_and_its_worst_take_over_the_best() -> None:
    sweep = a_climb("pbt", rounds={"size": 10}, resource={"parameter": "epochs", "min": 2, "max": 7})

    trials = searched(sweep, loss, 9)

    assert epochs(trials) == [[2] * 10, [4] * 10, [6] * 10, [7] * 10]
    first = sorted((one for one in trials if one.round == 1), key=lambda one: one.values or ())
    second = [one for one in trials if one.round == 2]
    same = [one for one in second if values(one.assignment) in [values(other.assignment) for other in first]]
    assert {one.parent for one in same} == {one.id for one in first[:8]}
    assert {one.parent for one in second if one not in same} <= {one.id for one in first[:2]}


def test_a_population_that_has_lost_everyone_is_over() -> None:
    sweep = a_climb("pbt", rounds={"size": 4})
    first = next_round(sweep, (), number=1)
    assert isinstance(first, Round)

    found = next_round(sweep, recorded(first, lambda _: None), number=2)

    assert isinstance(found, Finished)
    assert found.reason == "exhausted"


@pytest.mark.parametrize("method", GOING_ON)
def test_constraints_and_conditions_hold_in_every_rung(method: str) -> None:
    sweep = a_climb(
        method,
        rounds={"size": 12, "max": 4},
        constraints=["width * depth <= 512"],
        parameters={
            "optimizer": {"values": ["adam", "sgd"]},
            "momentum": {"min": 0.0, "max": 0.99, "when": {"optimizer": "sgd"}},
            "width": {"values": [32, 64, 128, 256]},
            "depth": {"min": 1, "max": 8},
        },
    )

    trials = searched(sweep, lambda one: float(one["depth"]), 4)

    assert len({canonical_json(one.assignment) for one in trials}) == len(trials)
    for one in trials:
        assert int(str(one.assignment["width"])) * int(str(one.assignment["depth"])) <= 512
        assert ("momentum" in one.assignment) is (one.assignment["optimizer"] == "sgd")


@pytest.mark.parametrize("method", GOING_ON)
def test_run_cap_bounds_all_rungs_together(method: str) -> None:
    assert len(searched(a_climb(method, run_cap=30), loss, 9)) == 30
