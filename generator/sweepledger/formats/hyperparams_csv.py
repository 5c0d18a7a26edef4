"""The versioned table `hyperparams.csv`: one physical line per trial, every value typed and exact.

A cell is bare for numbers and booleans, always quoted for text and JSON, and empty where the parameter is
absent. Absent, null (JSON) and the empty text `""` therefore differ. 1 and 1.0 keep their spelling.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial
from typing import Any

from sweepledger.formats import csv_cells
from sweepledger.formats.json import load as load_json
from sweepledger.structs.values import Value, canonical_json, written

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


def write_table(names: Sequence[str], rows: Sequence[Row]) -> Table:
    """Return a table with columns of these names."""
    columns = choose_columns(names, rows)
    return Table(columns, split_rows(rows, columns))


def choose_columns(names: Sequence[str], rows: Iterable[Row]) -> tuple[Column, ...]:
    """Return the columns, each with the type of all of its values."""
    types_of: dict[str, set[ColumnType]] = {name: set() for name in names}
    replicated = False
    for row in rows:
        replicated = replicated or row.replicate > 0
        for name, value in row.values.items():
            is_plain = isinstance(value, str) and value.isprintable()
            types_of[name].add(
                ColumnType.STRING if is_plain else TYPES_OF_SCALARS.get(type(value), ColumnType.JSON)
            )
    parameters = (
        Column(name, types.pop() if len(types) == 1 else ColumnType.JSON) for name, types in types_of.items()
    )
    return ((REPLICATE,) if replicated else ()) + tuple(parameters)


TYPES_OF_SCALARS = {bool: ColumnType.BOOLEAN, int: ColumnType.NUMBER, float: ColumnType.NUMBER}


def format_header(table: Sequence[Column]) -> str:
    """Return the header without its line end."""
    return ",".join([TRIAL_COLUMN, *(column.name for column in table)])


def environment_text(value: Value, kind: ColumnType) -> str:
    """Return a value as in the environment variable of a trial."""
    return _json(value) if kind is ColumnType.JSON else str(written(value))


def _json(value: Value) -> str:
    return json.dumps(written(value), allow_nan=False)


WRITERS: Mapping[ColumnType, Callable[[Any], str]] = {
    ColumnType.NUMBER: _json,
    ColumnType.BOOLEAN: canonical_json,
    ColumnType.STRING: csv_cells.quote,
    ColumnType.JSON: lambda value: csv_cells.quote(_json(value)),
}


def split_rows(
    rows: Sequence[Row], table: Sequence[Column], *, limit: int = MAX_SHARD_BYTES
) -> tuple[Shard, ...]:
    """Split the table into files of at most `limit` bytes, each with the header."""
    head = format_header(table) + "\n"
    writers = [(column.name, WRITERS[column.type]) for column in table]
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
    is_split = len(parts) > 1
    shards: list[Shard] = []
    for number, part in enumerate(parts):
        file = f"hyperparams-{number:03d}.csv" if is_split else TABLE_FILE
        first = shards[-1].first + shards[-1].count if shards else 0
        shards.append(Shard(file, first, len(part), head + "".join(part)))
    return tuple(shards)


def parse_shard(text: str, table: Sequence[Column]) -> tuple[Row, ...]:
    """Return the rows of a shard. Raises ValueError with the line number if `split_rows` cannot have written it."""
    head, *body = text.split("\n")
    if head != format_header(table):
        raise ValueError(f"line 1: the header must be {format_header(table)!r}, but got {head!r}")
    if not body or body.pop() != "":
        raise ValueError("the table must end with a line end")
    readers = [lru_cache(MAX_CACHED_CELLS)(partial(_whole_cell, kind=column.type)) for column in table]
    columns = [*zip(table, readers, strict=True)]
    return tuple(_row(content, columns, number) for number, content in enumerate(body, start=2))


MAX_CACHED_CELLS = 1_000
"""Limit per column; most columns have few different cells, and cells of a column with more are rarely repeated."""


def _whole_cell(text: str, kind: ColumnType) -> Value:
    cells = csv_cells.split_written_line(text)
    if cells is None or len(cells) != 1:
        raise ValueError("not one cell")
    return _value(cells[0], kind)


def _row(content: str, columns: Sequence[tuple[Column, Callable[[str], Value]]], number: int) -> Row:
    trial, *texts = content.split(",")
    if len(texts) != len(columns) or '"' in trial:
        trial, *texts = _split(content, len(columns), number)
    values: dict[str, Value] = {}
    for (column, read), text in zip(columns, texts, strict=True):
        if text:
            try:
                values[column.name] = read(text)
            except (ValueError, KeyError) as error:
                _split(content, len(columns), number)
                raise ValueError(f"line {number}: {column.name} is no {column.type}: {text!r}") from error
    if not columns or columns[0][0] != REPLICATE:
        return Row(trial, values)
    replicate = values.pop(REPLICATE_COLUMN, None)
    if not isinstance(replicate, int) or replicate < 0:
        raise ValueError(f"line {number}: the replicate must be a number from 0, but got {replicate!r}")
    return Row(trial, values, replicate)


def _split(content: str, count: int, number: int) -> Iterator[str]:
    """Return the cells of a line in which a text contains a comma. Raises ValueError."""
    cells = csv_cells.split_written_line(content)
    if cells is None or len(cells) != count + 1 or csv_cells.unquote(cells[0]) is not None:
        raise ValueError(f"line {number}: must have {count + 1} cells, but got {content!r}")
    return iter(cells)


def _value(cell: str, kind: ColumnType) -> Value:
    quoted = csv_cells.unquote(cell)
    bare = cell if quoted is None else ""
    match kind:
        case ColumnType.NUMBER:
            number = load_json(bare)
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ValueError("no number")  # noqa: TRY004 - one kind of error for a bad cell
            return number
        case ColumnType.BOOLEAN:
            return {"true": True, "false": False}[bare]
        case ColumnType.STRING | ColumnType.JSON:
            if quoted is None:
                raise ValueError("not quoted")
            return quoted if kind is ColumnType.STRING else load_json(quoted)


def trial_id_of(content: str) -> str:
    """Return the trial id of a row's line."""
    return content.split(",", maxsplit=1)[0]


def replicate_of(head: str, content: str) -> int:
    """Return the replicate number of a row. Raises ValueError if it is not a number."""
    if head.split(",")[1:2] != [REPLICATE_COLUMN]:
        return 0
    return int(content.split(",")[1])


def row_digest(program: str, head: str, content: str) -> str:
    """Return the digest of what a trial ran: SHA-256 over the program's digest, the header and the row."""
    return hashlib.sha256(f"{program}\n{head}\n{content}\n".encode()).hexdigest()
