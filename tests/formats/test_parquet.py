"""The values of a column in Parquet have one type."""

from typing import Any

import pytest

from sweepledger.formats.parquet import uniform


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ([1, None, 2], [1, None, 2]),
        ([1, None, 2.5], [1.0, None, 2.5]),
        (["adam", None, 2, True], ['"adam"', None, "2", "true"]),
        ([[1, 2], None], ["[1,2]", None]),
        ([2**63, None, -1], ["9223372036854775808", None, "-1"]),
    ],
)
def test_a_column_has_values_of_one_type(values: list[Any], stored: list[Any]) -> None:
    assert [(type(value), value) for value in uniform(values)] == [(type(value), value) for value in stored]
