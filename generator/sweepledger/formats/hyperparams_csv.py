"""The versioned table `hyperparams.csv`: one physical line per trial, every value typed and exact.

A cell is bare for numbers and booleans, always quoted for text and JSON, and empty where the parameter is
absent. Absent, null (JSON) and the empty text `""` therefore differ. 1 and 1.0 keep their spelling.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import repeat
from typing import Any

from sweepledger.formats import csv_cells
from sweepledger.formats.csv_cells import ABSENT
from sweepledger.formats.json import load as load_json
from sweepledger.structs.values import Value, written

TABLE_FILE = "hyperparams.csv"
"""The table of a batch, unless it is split into several files."""

TRIAL_COLUMN = "trial"

REPLICATE_COLUMN = "replicate"
"""First column after the trial, in tables that contain replicates other than 0."""

MAX_SHARD_BYTES = 512 * 1024
"""Half of the limit of a ConfigMap, which leaves room for metadata and encodings."""


class ColumnType(StrEnum):
    """Type of all cells of a column."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Column:
    """A parameter's column."""

    name: str
    type: ColumnType


REPLICATE = Column(REPLICATE_COLUMN, ColumnType.NUMBER)


@dataclass(frozen=True, slots=True)
class Row:
    """A trial id and its values; absent parameters are not in the mapping."""

    trial: str
    values: Mapping[str, Value]
    replicate: int = 0


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of the table: rows `first` to `first + count - 1`."""

    file: str
    first: int
    count: int
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """A whole table, split into files."""

    columns: tuple[Column, ...]
    shards: tuple[Shard, ...]


_KINDS = {bool: ColumnType.BOOLEAN, int: ColumnType.NUMBER, float: ColumnType.NUMBER}


def write_table(names: Sequence[str], rows: Sequence[Row], *, limit: int = MAX_SHARD_BYTES) -> Table:
    """Return a table with these columns, each with one type for all its values, split into files within a limit."""
    types_of: dict[str, set[ColumnType]] = {name: set() for name in names}
    for row in rows:
        for name, value in row.values.items():
            is_plain = isinstance(value, str) and value.isprintable()
            kind = ColumnType.STRING if is_plain else _KINDS.get(type(value), ColumnType.JSON)
            types_of[name].add(kind)
    columns = [REPLICATE] if any(row.replicate for row in rows) else []
    for name, types in types_of.items():
        columns.append(Column(name, types.pop() if len(types) == 1 else ColumnType.JSON))
    return Table(tuple(columns), tuple(_shards(columns, rows, limit)))


def _shards(columns: Sequence[Column], rows: Sequence[Row], limit: int) -> Iterator[Shard]:
    head = _header(columns)
    writers = [
        (column.name, _quoted_json if column.type is ColumnType.JSON else csv_cells.value_cell)
        for column in columns
    ]
    parts: list[list[str]] = [[]]
    size = len(head.encode())
    for row in rows:
        values = {**row.values, REPLICATE_COLUMN: row.replicate}
        cells = [write(values[name]) if name in values else "" for name, write in writers]
        text = ",".join([row.trial, *cells]) + "\n"
        row_bytes = len(text) if text.isascii() else len(text.encode())
        if parts[-1] and size + row_bytes > limit:
            parts.append([])
            size = len(head.encode())
        parts[-1].append(text)
        size += row_bytes
    first = 0
    for number, part in enumerate(parts):
        file = f"hyperparams-{number:03d}.csv" if len(parts) > 1 else TABLE_FILE
        yield Shard(file, first, len(part), head + "".join(part))
        first += len(part)


def _header(columns: Sequence[Column]) -> str:
    return ",".join([TRIAL_COLUMN, *(column.name for column in columns)]) + "\n"


def json_cell(value: Value) -> str:
    """Return a value as JSON in its original spelling."""
    return json.dumps(written(value), allow_nan=False)


def _quoted_json(value: Value) -> str:
    return csv_cells.quote(json_cell(value))


def parse_shard(text: str, table: Sequence[Column]) -> tuple[Row, ...]:
    """Return the rows of a shard. Raises ValueError with the line number if `write_table` cannot have written it."""
    lines = csv_cells.written_lines(text)
    head = ",".join(next(lines))
    if f"{head}\n" != _header(table):
        raise ValueError(f"line 1: the header must be {_header(table).rstrip()!r}, but got {head!r}")
    readers = [
        (column.name, _replicate if column == REPLICATE else partial(_value, kind=column.type))
        for column in table
    ]
    values = csv_cells.read_columns([*lines], [(TRIAL_COLUMN, _trial), *readers])
    trials = values.pop(TRIAL_COLUMN)
    replicates: Iterable[int] = values.pop(REPLICATE_COLUMN) if REPLICATE in table[:1] else repeat(0)
    return tuple(map(Row, trials, csv_cells.row_mappings(values, len(trials)), replicates))


def _trial(cell: str) -> str:
    if csv_cells.unquote(cell) is not None:
        raise ValueError(f"must be the id of a trial, but got {cell!r}")
    return cell


def _replicate(cell: str) -> int:
    if not re.fullmatch("0|[1-9][0-9]*", cell):
        raise ValueError(f"must be a number from 0, but got {cell!r}")
    return int(cell)


def _value(cell: str, kind: ColumnType) -> Any:
    quoted = csv_cells.unquote(cell)
    if not cell:
        return ABSENT
    if kind is ColumnType.STRING and quoted is not None:
        return quoted
    with suppress(ValueError):
        value = load_json(cell if quoted is None else quoted)
        if (_KINDS.get(type(value)) if quoted is None else ColumnType.JSON) is kind:
            return value
    raise ValueError(f"must be of type {kind}, but got {cell!r}")


def row_digest(program: str, head: str, content: str) -> str:
    """Return the digest of a trial's input: SHA-256 over the program's digest, the header and the row."""
    return hashlib.sha256(f"{program}\n{head}\n{content}\n".encode()).hexdigest()
