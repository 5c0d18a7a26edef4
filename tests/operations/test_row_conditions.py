"""Conditions on trials have the language of constraints; a value that a trial lacks is null."""

from typing import Any

import pytest

from sweepledger.formats.summary_csv import SummaryTable
from sweepledger.operations.reports.results import row_condition
from sweepledger.structs.record import Status, SummaryRow
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


TABLE = SummaryTable(("x", "y"), ("loss",), tuple(a_row({"x": value}) for value in VALUES.values()))


def found(condition: str) -> list[str]:
    holds = row_condition(condition, TABLE)
    return [name for name, row in zip(VALUES, TABLE.rows, strict=True) if holds(row)]


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("x == [1, 2]", ["list"]),
        ("x == ['a', 2.5, null]", ["other list"]),
        ("x == '[1,2]'", ["text list"]),
        ("x == null", ["null"]),
        ("x == ''", ["empty"]),
        ("x == '1'", ["text 1"]),
        ("x == [[1, 2], null, true]", ["nested"]),
        ("x == 0.1 + 0.2", ["0.3"]),
        ("x <= 0.3", ["0.3"]),
        ("x < 2 and loss == 0.5 and status == 'ok'", ["1", "0.3"]),
        ("x in [1, 'adam']", ["text", "1"]),
        ("1 / (x - 1) < 0", ["0.3"]),
        ("y < 1", []),
        ("y == null and x == 1", ["1"]),
    ],
)
def test_a_condition_is_an_expression_of_columns(condition: str, names: list[str]) -> None:
    assert found(condition) == names


def test_the_opposite_finds_all_others() -> None:
    assert found("x != [1, 2]") == [name for name in VALUES if name != "list"]
