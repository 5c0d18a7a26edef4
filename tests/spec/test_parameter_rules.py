"""Parameters: names, domains and values at their bounds."""

from typing import Any

import pytest

from sweepledger.distributions.choice import Choice
from tests.written_specs import bad, good, messages


@pytest.mark.parametrize("other", ["A", "a.b", "a-b", "A_b"])
def test_parameters_that_share_a_variable_are_refused(other: str) -> None:
    first = "a" if other == "A" else "a_b"

    assert bad(parameters={first: {"value": 1}, other: {"value": 2}}) == [
        (f"parameters['{other}']" if "." in other else f"parameters.{other}", "parameter-collision")
    ]


@pytest.mark.parametrize(
    ("values", "first", "again"),
    [
        ([1, 1.0], "1", "1.0"),
        ([0, -0.0], "0", "0.0"),
        (["a", "a"], "'a'", "'a'"),
        ([None, None], "null", "null"),
        ([True, True], "true", "true"),
        ([[1, 2], [1.0, 2]], "[1, 2]", "[1.0, 2]"),
        ([[], []], "[]", "[]"),
    ],
)
def test_equal_values_are_one_value(values: list[Any], first: str, again: str) -> None:
    assert messages(parameters={"a": {"values": ["x", *values]}}) == [
        f"must differ from values[1] ({first}), got {again}"
    ]


@pytest.mark.parametrize(
    "values", [[1, True], [0, False], ["1", 1], [None, "null"], [[1], 1], [[1, 2], [2, 1]], [5]]
)
def test_values_of_different_kinds_are_different(values: list[Any]) -> None:
    sweep = good(parameters={"a": {"values": values}})

    assert sweep.design.space.parameters[0].domain == Choice(
        tuple(tuple(value) if isinstance(value, list) else value for value in values)
    )


def test_long_values_are_refused_one_byte_beyond_the_limit() -> None:
    for key, value in (("value", "x" * 4094), ("values", ["x" * 4094]), ("value", ["x" * 4092])):
        assert good(parameters={"a": {key: value}})

    assert messages(parameters={"a": {"value": "x" * 4095}}) == [
        "must be at most 4096 bytes as JSON, got 4097"
    ]
    assert bad(parameters={"a": {"values": ["x", "x" * 4095]}}) == [
        ("parameters.a.values[1]", "value-too-long")
    ]


@pytest.mark.parametrize("value", [{"a": 1}, [[1]], [{"a": 1}]])
def test_values_are_scalars_or_lists_of_scalars(value: Any) -> None:
    codes = [code for _, code in bad(parameters={"a": {"value": value}, "b": {"values": [value]}})]

    assert codes == ["wrong-type", "wrong-type"]
