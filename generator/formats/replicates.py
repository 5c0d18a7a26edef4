"""`replicates.csv`: one line an assignment, with the mean, spread and interval of its replicates.

Cells are those of `summary.csv`. Parameters are named as there; all other columns are bare.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generator.formats.summary import PARAMETER_PREFIX, number_cell, text_cell, value_cell
from generator.structs.values import canonical_json

REPLICATES_FILE = "replicates.csv"

COLUMNS = ("in_spec", "count", "mean", "standard_deviation", "low", "high", "trials")
"""After the parameters; `low` and `high` are the ends of the 95 % interval of the mean."""


@dataclass(frozen=True, slots=True)
class ReplicatesRow:
    """An assignment; None where its results are too few."""

    assignment: Mapping[str, Any]
    in_spec: bool | None
    count: int
    """Of results that the numbers come from."""
    mean: float | None
    deviation: float | None
    low: float | None
    high: float | None
    trials: tuple[str, ...]
    """Ids by replicate, of those without a result, too."""


def write(rows: Iterable[ReplicatesRow], parameters: Sequence[str]) -> str:
    """Write the table, its rows in the order given."""
    head = [*(text_cell(PARAMETER_PREFIX + name) for name in parameters), *COLUMNS]
    lines = [",".join(head), *(",".join(_cells(row, parameters)) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


def _cells(row: ReplicatesRow, parameters: Sequence[str]) -> list[str]:
    return [
        *(value_cell(row.assignment[name]) if name in row.assignment else "" for name in parameters),
        "" if row.in_spec is None else canonical_json(row.in_spec),
        str(row.count),
        *(number_cell(number) for number in (row.mean, row.deviation, row.low, row.high)),
        text_cell(" ".join(row.trials)),
    ]
