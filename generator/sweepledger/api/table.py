"""A table of results: a sequence of frozen rows, and a data frame on request."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from sweepledger import garbage_collection
from sweepledger.api.html import table_html
from sweepledger.errors import ToolError
from sweepledger.formats.parquet import uniform

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Row_co = TypeVar("Row_co", covariant=True)

SHOWN_ROWS = 20
"""Rows that a notebook shows."""

TIME_COLUMNS = frozenset({"started", "finished", "date"})
"""Columns of times as text in ISO 8601, which are times in a data frame."""


class ResultTable(Sequence[Row_co], Generic[Row_co]):
    """A sequence of rows that `to_pandas` and `to_polars` return as a data frame."""

    def __init__(self, columns: Mapping[str, Sequence[Any]], rows: Callable[[], tuple[Row_co, ...]]) -> None:
        self.columns = columns
        """The columns of the data frame, by name."""
        self._make_rows = rows

    @cached_property
    def _rows(self) -> tuple[Row_co, ...]:
        return self._make_rows()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __iter__(self) -> Iterator[Row_co]:
        return iter(self._rows)

    @overload
    def __getitem__(self, place: int) -> Row_co: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Row_co, ...]: ...

    def __getitem__(self, place: int | slice) -> Row_co | tuple[Row_co, ...]:
        return self._rows[place]

    def __repr__(self) -> str:
        return f"<{len(self)} rows: {', '.join(self.columns)}>"

    def to_pandas(self) -> "pd.DataFrame":
        """Return a pandas data frame; missing values are NaN or None. Raises ToolError without pandas."""
        pandas = _library("pandas")
        frame: pd.DataFrame = pandas.DataFrame(
            {
                name: pandas.to_datetime(list(values), utc=True) if name in TIME_COLUMNS else values
                for name, values in self.columns.items()
            }
        )
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """Return a polars data frame; missing values are null. Raises ToolError without polars.

        A column of mixed types, or of lists, contains JSON.
        """
        polars = _library("polars")
        frame: pl.DataFrame = polars.DataFrame(
            [polars.Series(name, uniform(cells)) for name, cells in self.columns.items()]
        )
        times = [name for name in self.columns if name in TIME_COLUMNS and frame[name].dtype == polars.String]
        return frame.with_columns(
            polars.col(name).str.to_datetime(time_unit="us", time_zone="UTC") for name in times
        )

    def _repr_html_(self) -> str:
        cells = zip(*(values[:SHOWN_ROWS] for values in self.columns.values()), strict=True)
        return table_html(tuple(self.columns), cells, total=len(self))


def _library(name: str) -> ModuleType:
    try:
        with garbage_collection.paused():  # it makes many objects beside those of the table
            return import_module(name)
    except ImportError as error:
        raise ToolError.missing_library(
            f"data frames are made by {name}",
            extra=name,
            alternative="; without it, a table is a sequence of rows",
        ) from error
