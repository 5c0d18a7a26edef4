"""The versioned table `hyperparams.csv`: one physical line a trial, every value typed and exact.

A cell is bare for numbers and booleans, always in quotes for text and JSON, and empty where the
parameter is absent: so absent, null (JSON) and the empty text `""` stay three things.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from generator.structs.values import Value, canonical, canonical_json

TRIAL_COLUMN = "trial"

REPLICATE_COLUMN = "replicate"
"""Stands before the parameters, in tables where a trial is not the first of its assignment."""

CELL = re.compile(r'(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))(?=,|$)')

SHARD_BYTES = 512 * 1024
"""Half of what a ConfigMap may hold, so that metadata and encodings never decide."""


class ColumnType(StrEnum):
    """The one type of a column's cells."""

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
    """A whole table as it is written."""

    columns: tuple[Column, ...]
    shards: tuple[Shard, ...]


def columns(names: Sequence[str], rows: Iterable[Row]) -> tuple[Column, ...]:
    """Choose each column's type from all of its values."""
    found: dict[str, set[ColumnType]] = {name: set() for name in names}
    replicated = False
    for row in rows:
        replicated = replicated or row.replicate > 0
        for name, value in row.values.items():
            found[name].add(SIMPLE.get(type(value)) or _type_of(value))
    parameters = (
        Column(name, types.pop() if len(types) == 1 else ColumnType.JSON) for name, types in found.items()
    )
    return ((REPLICATE,) if replicated else ()) + tuple(parameters)


SIMPLE = {bool: ColumnType.BOOLEAN, int: ColumnType.NUMBER, float: ColumnType.NUMBER}


def _type_of(value: Value) -> ColumnType:
    match value:
        case bool():
            return ColumnType.BOOLEAN
        case int() | float():
            return ColumnType.NUMBER
        case str() if value.isprintable():
            return ColumnType.STRING
        case _:
            return ColumnType.JSON


def header(table: Sequence[Column]) -> str:
    """Write the first line, without its line end."""
    return ",".join([TRIAL_COLUMN, *(column.name for column in table)])


def line(row: Row, table: Sequence[Column]) -> str:
    """Write a row, without its line end."""
    return _line(row, [(column.name, WRITERS[column.type]) for column in table])


def _line(row: Row, writers: Iterable[tuple[str, Callable[[Any], str]]]) -> str:
    values = {**row.values, REPLICATE_COLUMN: row.replicate}
    return ",".join([row.trial, *[write(values[name]) if name in values else "" for name, write in writers]])


def environment_text(value: Value, kind: ColumnType) -> str:
    """Write a value as the launcher puts it into the trial's environment."""
    return json.dumps(canonical(value)) if kind is ColumnType.JSON else str(canonical(value))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


WRITERS: Mapping[ColumnType, Callable[[Any], str]] = {
    ColumnType.NUMBER: canonical_json,
    ColumnType.BOOLEAN: canonical_json,
    ColumnType.STRING: _quoted,
    ColumnType.JSON: lambda value: _quoted(json.dumps(canonical(value))),
}


def shards(rows: Sequence[Row], table: Sequence[Column], *, limit: int = SHARD_BYTES) -> tuple[Shard, ...]:
    """Cut the table into files of at most `limit` bytes, each with the header."""
    head = header(table) + "\n"
    writers = [(column.name, WRITERS[column.type]) for column in table]
    parts: list[list[str]] = [[]]
    size = len(head.encode())
    for row in rows:
        text = _line(row, writers) + "\n"
        bytes_of_it = len(text) if text.isascii() else len(text.encode())
        if parts[-1] and size + bytes_of_it > limit:
            parts.append([])
            size = len(head.encode())
        parts[-1].append(text)
        size += bytes_of_it
    cut = len(parts) > 1
    made: list[Shard] = []
    for number, part in enumerate(parts):
        file = f"hyperparams-{number:03d}.csv" if cut else "hyperparams.csv"
        first = made[-1].first + made[-1].count if made else 0
        made.append(Shard(file, first, len(part), head + "".join(part)))
    return tuple(made)


def parse(text: str, table: Sequence[Column]) -> tuple[Row, ...]:
    """Read a shard back. Raises ValueError with the line's number where it is not what `shards` writes."""
    head, *body = text.split("\n")
    if head != header(table):
        raise ValueError(f"line 1: the header must be {header(table)!r}, but got {head!r}")
    if not body or body.pop() != "":
        raise ValueError("the table must end with a line end")
    cells = [_Cells(column) for column in table]
    return tuple(_row(content, cells, number) for number, content in enumerate(body, start=2))


class _Cells(dict[str, Value]):
    """The cells of a column and their values, each read once: most columns have few different ones."""

    def __init__(self, column: Column) -> None:
        super().__init__()
        self.name, self.type = column.name, column.type

    def __missing__(self, cell: str) -> Value:
        found = CELL.fullmatch(cell)
        if found is None:
            raise ValueError("no cell")
        value = _value(found[1], found[2], self.type)
        if len(self) < REMEMBERED:
            self[cell] = value
        return value


REMEMBERED = 1_000
"""Different cells of a column; where there are more, each is rarely seen again."""


def _row(content: str, cells: Sequence[_Cells], number: int) -> Row:
    trial, *texts = content.split(",")
    if len(texts) != len(cells) or '"' in trial:
        trial, *texts = _split(content, len(cells), number)
    values: dict[str, Value] = {}
    for column, text in zip(cells, texts, strict=True):
        if text:
            try:
                values[column.name] = column[text]
            except (ValueError, KeyError) as error:
                _split(content, len(cells), number)
                raise ValueError(f"line {number}: {column.name} is no {column.type}: {text!r}") from error
    if not cells or cells[0].name != REPLICATE_COLUMN:
        return Row(trial, values)
    replicate = values.pop(REPLICATE_COLUMN, None)
    if not isinstance(replicate, int) or replicate < 0:
        raise ValueError(f"line {number}: the replicate must be a number from 0, but got {replicate!r}")
    return Row(trial, values, replicate)


def _split(content: str, count: int, number: int) -> Iterator[str]:
    """Part a line in which a text holds a comma, or which is none of ours."""
    cells = list(CELL.finditer(content))
    if len(cells) != count + 1 or "".join(cell[0] for cell in cells) != content or cells[0][2] is None:
        raise ValueError(f"line {number}: must have {count + 1} cells, but got {content!r}")
    return (cell[0].removeprefix(",") for cell in cells)


def _value(quoted: str | None, bare: str | None, kind: ColumnType) -> Value:
    match kind:
        case ColumnType.NUMBER:
            number = json.loads(bare or "")
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ValueError("no number")  # noqa: TRY004 - one kind of error for a bad cell
            return number
        case ColumnType.BOOLEAN:
            return {"true": True, "false": False}[bare or ""]
        case ColumnType.STRING | ColumnType.JSON:
            if quoted is None:
                raise ValueError("not quoted")
            text = quoted.replace('""', '"')
            return text if kind is ColumnType.STRING else json.loads(text)


def replicate_of(head: str, content: str) -> int:
    """Read only which repetition of its assignment a row is. Raises ValueError where that is no number."""
    if head.split(",")[1:2] != [REPLICATE_COLUMN]:
        return 0
    return int(content.split(",")[1])


def row_digest(program: str, head: str, content: str) -> str:
    """Say what exactly a trial ran: SHA-256 over the program's digest, the header and the row's own line."""
    return hashlib.sha256(f"{program}\n{head}\n{content}\n".encode()).hexdigest()
