"""A table of results: a sequence of frozen rows, a data frame on request, and HTML in notebooks."""

import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from html import escape
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from sweepledger import garbage_collection
from sweepledger.errors import ToolError
from sweepledger.formats.parquet import uniform
from sweepledger.results.display import format_number, format_value, one_line

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

    @classmethod
    def of(cls, kind: type[Row_co], rows: Iterable[Row_co]) -> "ResultTable[Row_co]":
        """Return a table of dataclasses, with a column for each field."""
        listed = tuple(rows)
        names = [each.name for each in fields(kind)]  # type: ignore[arg-type]  # each is a dataclass
        return cls({name: [getattr(row, name) for row in listed] for name in names}, lambda: listed)

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


LONGEST_CELL = 80


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure of a sweep's report."""

    name: str
    """Its file name without the ending, such as `trials` or `curves`."""
    svg: str = field(repr=False)
    """The file's text."""

    def _repr_html_(self) -> str:
        # As an image, an SVG file can run no script, load nothing, and its styles do not reach the notebook.
        content = b64encode(self.svg.encode()).decode()
        return f'<img alt="{text_html(self.name)}" src="data:image/svg+xml;base64,{content}">'


def text_html(text: str) -> str:
    """Return user text as one visible line of HTML, without markup."""
    return escape(one_line(text))


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """Return a heading, and a table of facts by name."""
    rows = "".join(
        f"<tr><th>{text_html(name)}</th><td>{_cell(value)}</td></tr>" for name, value in facts.items()
    )
    return f"<h4>{text_html(title)}</h4><table>{rows}</table>"


def table_html(names: Sequence[str], rows: Iterable[Sequence[Any]], *, total: int) -> str:
    """Return a table of some rows; it states their number and the total if rows are missing."""
    head = "".join(f"<th>{text_html(name)}</th>" for name in names)
    lines = [f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows]
    note = "" if len(lines) == total else f"<p>{len(lines)} of {total} rows</p>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{note}"


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case float() if math.isnan(value):
            return ""
        case float():
            return escape(format_number(value))
        case str():
            text = one_line(value)
        case _:
            text = format_value(value)
    return escape(text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…")
