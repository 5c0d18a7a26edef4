"""Limits of lists and grids, computed before anything is listed."""

from typing import Any

import pytest

from sweepledger.problems import Problem
from sweepledger.search import Expansion, explore
from tests.written_specs import axis, bad, good, good_spec


def refusal(**changes: Any) -> Problem:
    spec = good_spec(**changes)
    explored = explore(spec.sweep, spec.source)
    assert isinstance(explored, tuple)
    (problem,) = explored
    assert (problem.path, problem.code) == ("parameters", "too-many-trials")
    return problem


def test_a_grid_of_the_largest_size_is_taken_and_one_trial_more_is_not() -> None:
    assert good(parameters={"a": axis(400), "b": axis(250), "c": {"value": 1}})
    problem = refusal(parameters={"a": axis(400), "b": axis(251), "c": {"value": 1}})
    assert problem.message == "must make at most 100000 trials, got 100400 = 400 * 251"


def test_a_grid_of_any_size_is_counted_and_not_made() -> None:
    message = refusal(parameters={f"p{n}": axis(90) for n in range(20)}).message

    assert message.startswith("must make at most 100000 trials, got 121576654590569288010000000000")
    assert len(message) < 150


def test_before_constraints_a_grid_may_have_a_million_combinations() -> None:
    sides = {"b": {"min": 1, "max": 1000}}

    assert good(parameters={"a": {"min": 1, "max": 1000}, **sides}, constraints=["a == b"])
    problem = refusal(parameters={"a": {"min": 0, "max": 1000}, **sides}, constraints=["a == b"])
    assert problem.message == (
        "must make at most 1000000 combinations before constraints, got 1001000 = 1001 * 1000"
    )


@pytest.mark.parametrize(
    "domain",
    [
        {"min": 1, "max": 100_001},
        {"distribution": "q_uniform", "min": 0, "max": 100_001},
        {"distribution": "q_uniform", "min": 0, "max": 10_000.1, "q": 0.1},
    ],
)
def test_every_countable_domain_is_counted(domain: dict[str, Any]) -> None:
    assert refusal(parameters={"a": domain})


def test_what_is_zipped_counts_once() -> None:
    parameters = {"a": axis(500), "b": axis(500), "c": axis(200)}

    assert good(parameters=parameters, zip=[["a", "b"]])
    assert refusal(parameters=parameters)


def test_a_grid_with_conditions_is_counted_exactly() -> None:
    halves = {f"p{n}": {**axis(400), "when": {"half": n}} for n in range(2)}
    spec = good_spec(parameters={"half": {"values": [0, 1]}, **halves})

    expansion = explore(spec.sweep)

    assert isinstance(expansion, Expansion)
    assert len(expansion.configurations) == 800


def test_assignments_name_no_more_than_a_file_has_columns() -> None:
    def rows(count: int) -> list[dict[str, int]]:
        names = [f"n{number}" for number in range(count)]
        return [dict.fromkeys(names[:60], 1), dict.fromkeys(names[60:], 1)]

    assert good(method="list", parameters=..., assignments=rows(100))
    assert bad(method="list", parameters=..., assignments=rows(101)) == [("assignments", "out-of-range")]
