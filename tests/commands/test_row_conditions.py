"""Conditions on trials find values as tables show them."""

from typing import Any

import pytest

from sweepledger.cli.text.values import value_text
from sweepledger.commands.reports.results import RowCondition
from sweepledger.formats.summary_csv import SummaryRow
from sweepledger.structs.record import Status
from sweepledger.structs.values import Value

VALUES: dict[str, Value] = {
    "list": [1, 2],
    "other list": ["a", 2.5, None],
    "null": None,
    "text null": "null",
    "empty": "",
    "text list": "[1,2]",
    "text": "adam",
    "text 1": "1",
    "1": 1,
    "true": True,
    "text true": "true",
    "nested": [[1, 2], None, True],  # type: ignore[list-item]
    "0.3": 0.3,
}


def a_row(assignment: dict[str, Value]) -> SummaryRow:
    fields: dict[str, Any] = dict.fromkeys(SummaryRow.__dataclass_fields__)
    return SummaryRow(**{**fields, "status": Status.OK, "assignment": assignment, "metrics": {"loss": 0.5}})


def found(condition: str) -> list[str]:
    parsed = RowCondition.parse(condition)
    return [name for name, value in VALUES.items() if parsed.holds(a_row({"x": value}))]


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("x=[1,2]", ["list", "text list"]),
        ("x=[1, 2]", ["list"]),
        ("x=[1.0, 2]", ["list"]),
        ('x=["a",2.5,null]', ["other list"]),
        ('x="[1,2]"', ["text list"]),
        ("x=null", ["null", "text null"]),
        ('x="null"', ["text null"]),
        ("x=", ["empty"]),
        ('x=""', ["empty"]),
        ("x=1", ["text 1", "1"]),
        ('x="1"', ["text 1"]),
        ("x=1.0", ["1"]),
        ("x=true", ["true", "text true"]),
        ("x=[1,", []),
        ("x=[[1,2],null,true]", ["nested"]),
        ("x=3e-1", ["0.3"]),
        ("x<=0.3", ["0.3"]),
        ("x<2", ["1", "0.3"]),
    ],
)
def test_a_condition_finds_a_value_as_tables_show_it(condition: str, names: list[str]) -> None:
    assert found(condition) == names


@pytest.mark.parametrize("name", VALUES)
def test_what_a_table_shows_finds_the_value(name: str) -> None:
    assert name in found(f"x={value_text(VALUES[name])}")


@pytest.mark.parametrize("condition", ["x!=[1,2]", "x!=null", "x!="])
def test_the_opposite_finds_all_others(condition: str) -> None:
    assert found(condition) == [name for name in VALUES if name not in found(condition.replace("!", ""))]


def test_an_absent_value_is_empty_and_not_null() -> None:
    row = a_row({})

    assert RowCondition.parse("x=").holds(row)
    assert not RowCondition.parse("x=null").holds(row)
    assert RowCondition.parse("x!=null").holds(row)
