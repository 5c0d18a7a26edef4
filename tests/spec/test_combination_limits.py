"""Limits of lists and grids, computed before anything is listed."""

from typing import Any

import pytest

from tests.written_specs import axis, bad, good, messages


def test_a_grid_of_the_largest_size_is_taken_and_one_trial_more_is_not() -> None:
    assert good(parameters={"a": axis(400), "b": axis(250), "c": {"value": 1}})
    assert bad(parameters={"a": axis(400), "b": axis(251)}) == [("parameters", "too-many-trials")]
    assert messages(parameters={"a": axis(400), "b": axis(251), "c": {"value": 1}}) == [
        "must make at most 100000 trials, got 100400 = 400 * 251"
    ]


def test_a_grid_of_any_size_is_counted_and_not_made() -> None:
    (message,) = messages(parameters={f"p{n}": axis(90) for n in range(100)})

    assert message.startswith("must make at most 100000 trials, got 2656139888758747693387813220357796")
    assert len(message) < 150


def test_equal_factors_are_written_as_a_power() -> None:
    assert messages(parameters={f"p{n}": axis(10) for n in range(12)}) == [
        "must make at most 100000 trials, got 1000000000000 = 10^12"
    ]


def test_before_constraints_a_grid_may_have_a_million_combinations() -> None:
    sides = {"b": {"min": 1, "max": 1000}}

    assert good(parameters={"a": {"min": 1, "max": 1000}, **sides}, constraints=["a == b"])
    assert messages(parameters={"a": {"min": 0, "max": 1000}, **sides}, constraints=["a == b"]) == [
        "must make at most 1000000 combinations before constraints, got 1001000 = 1001 * 1000"
    ]


@pytest.mark.parametrize(
    "domain",
    [
        {"min": 1, "max": 100_001},
        {"distribution": "q_uniform", "min": 0, "max": 100_001},
        {"distribution": "q_uniform", "min": 0, "max": 10_000.1, "q": 0.1},
    ],
)
def test_every_countable_domain_is_counted(domain: dict[str, Any]) -> None:
    assert bad(parameters={"a": domain}) == [("parameters", "too-many-trials")]


@pytest.mark.parametrize(
    "domain",
    [
        {"min": 0, "max": 1, "step": 0.0001},
        {"min": 0, "max": 1, "count": 10_001},
        {"linspace": [0, 1, 10_001]},
        {"logspace": [0, 1, 10_001]},
        {"geomspace": [1, 2, 10_001]},
    ],
)
def test_a_list_by_arithmetic_counts_as_if_written_out(domain: dict[str, Any]) -> None:
    assert messages(parameters={"a": domain, "b": axis(10)}) == [
        "must make at most 100000 trials, got 100010 = 10001 * 10"
    ]


def test_what_is_zipped_counts_once() -> None:
    parameters = {"a": axis(500), "b": axis(500), "c": axis(200)}

    assert good(parameters=parameters, zip=[["a", "b"]])
    assert bad(parameters=parameters) == [("parameters", "too-many-trials")]


def test_a_grid_with_conditions_is_counted_exactly_by_the_search() -> None:
    halves = {f"p{n}": {**axis(400), "when": {"half": n}} for n in range(2)}

    assert good(parameters={"half": {"values": [0, 1]}, **halves})


def test_the_lists_of_all_parameters_are_counted_together() -> None:
    half = {"linspace": [0, 1, 50_000]}
    document: dict[str, Any] = {"method": "random", "seed": 0, "run_cap": 3}

    assert good(**document, parameters={"a": half, "b": half})
    assert messages(**document, parameters={"a": half, "b": half, "c": axis(2)}) == [
        "must list at most 100000 values in all parameters together, got 100002"
    ]


def test_assignments_name_no_more_than_a_file_has_columns() -> None:
    def rows(count: int) -> list[dict[str, int]]:
        names = [f"n{number}" for number in range(count)]
        return [dict.fromkeys(names[:60], 1), dict.fromkeys(names[60:], 1)]

    assert good(method="list", parameters=..., assignments=rows(100))
    assert bad(method="list", parameters=..., assignments=rows(101)) == [("assignments", "out-of-range")]


@pytest.mark.parametrize("kind", ["log_uniform", "q_log_uniform", "inv_log_uniform"])
def test_exponents_must_give_two_numbers(kind: str) -> None:
    document: dict[str, Any] = {"method": "random", "seed": 0, "run_cap": 3}
    near, far = ({"distribution": kind, "min": 0, "max": most} for most in (1e-17, 1e-3))

    assert bad(**document, parameters={"a": near}) == [("parameters.a.max", "exponent-range")]
    assert good(**document, parameters={"a": far})


@pytest.mark.parametrize(("shape", "is_good"), [(1e-3, True), (1e5, True), (9e-4, False), (1e300, False)])
def test_the_shape_of_a_beta_distribution_is_bounded(shape: float, *, is_good: bool) -> None:
    parameters = {"a": {"distribution": "beta", "a": 2, "b": shape}}
    spec: dict[str, Any] = {"method": "random", "seed": 0, "run_cap": 3, "parameters": parameters}

    if is_good:
        assert good(**spec)
    else:
        assert messages(**spec) == [f"must be from 0.001 to 100000, got {shape!r}"]
