"""Rows as Parquet. Requires pyarrow, an optional extra because of its size."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from sweepledger.errors import ToolError
from sweepledger.structs.values import canonical_json

SCALARS = (bool, int, float, str)


def write(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return named columns of one length as Parquet. Raises ToolError if pyarrow is not installed.

    A column of integers and floats becomes floats; a column of mixed types, or of lists, contains JSON.
    """
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ToolError.missing_library(
            "Parquet is written by pyarrow", extra="parquet", alternative=", or use --output csv"
        ) from error
    table = arrow.table({name: arrow.array(uniform(values)) for name, values in columns.items()})
    sink: Any = arrow.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue())


def uniform(values: Sequence[Any]) -> list[Any]:
    """Return a column's values with one type."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and len(kinds) > 1:
        return [None if value is None else float(value) for value in values]
    if len(kinds) > 1 or not kinds.issubset(SCALARS):
        return [None if value is None else canonical_json(value) for value in values]
    if kinds == {int} and any(value is not None and abs(value) >= 2**63 for value in values):
        return [None if value is None else str(value) for value in values]
    return list(values)
