"""The table: its files, which are verified, and the row of a trial."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any, Mapping, NamedTuple

from launch_files import Refused, sha256
from launch_json import distinct

TRIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
CELL = re.compile(r'"([^"]*(?:""[^"]*)*)"|([^",]*)')
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class Row(NamedTuple):
    """One row of the table."""

    number: int
    trial: str
    digest: str
    values: dict[str, Any]
    replicate: int = 0


class Rows(NamedTuple):
    """One verified file of the table."""

    file: str
    first: int
    columns: list[tuple[str, str]]
    header: str
    lines: list[str]


def count_rows(launch: Mapping[str, Any]) -> int:
    """Return the number of rows of the whole table."""
    return sum(shard["count"] for shard in launch["shards"])


def read_rows(launch: Mapping[str, Any], folder: str, index: int) -> Rows:
    """Read the file of the table that has a row, and verify it."""
    shards = [s for s in launch["shards"] if s["first"] <= index < s["first"] + s["count"]]
    if not shards:
        raise Refused(f"index {index} is beyond the table, which has {count_rows(launch)} rows")
    shard = shards[0]
    try:
        with open(os.path.join(folder, shard["file"]), "rb") as file:
            content = file.read()
    except OSError as error:
        raise Refused(f"the table cannot be read: {error}") from error
    digest = "sha256:" + sha256(content)
    if digest != shard["digest"]:
        raise Refused(f"{shard['file']} must have the digest {shard['digest']}, got {digest}")
    columns = [(column["name"], column["type"]) for column in launch["columns"]]
    header = ",".join(["trial", *(name for name, _ in columns)])
    try:
        lines = content.decode().split("\n")
        if lines[0] != header or lines[-1] or len(lines) != shard["count"] + 2:
            raise ValueError(
                f"it must have the header {header!r}, {shard['count']} rows and a final line end"
            )
    except ValueError as error:
        raise Refused(f"{shard['file']}: {error}") from error
    return Rows(shard["file"], shard["first"], columns, header, lines[1:-1])


def read_row(launch: Mapping[str, Any], folder: str, index: int) -> Row:
    """Read one row of the table."""
    rows = read_rows(launch, folder, index)
    line = rows.lines[index - rows.first]
    try:
        trial, values = parse_line(line, rows.columns)
        replicate = values.pop("replicate", None) if ("replicate", "number") in rows.columns else 0
        if type(replicate) is not int or replicate < 0:
            raise ValueError(f"the replicate must be a number from 0, got {replicate!r}")
    except ValueError as error:
        raise Refused(f"{rows.file}: {error}") from error
    digest = sha256(f"{launch['program']}\n{rows.header}\n{line}\n".encode())
    return Row(index, trial, digest, values, replicate)


def parse_line(line: str, columns: list[tuple[str, str]]) -> tuple[str, dict[str, Any]]:
    """Split a row: an empty cell is an absent parameter, `""` the empty text. Raises ValueError."""
    cells, position = [], 0
    while True:
        cell = CELL.match(line, position)
        assert cell  # an empty cell always matches
        cells.append(cell)
        position = cell.end() + 1
        if cell.end() == len(line):
            break
        if line[cell.end()] != ",":
            raise ValueError(f"a quote stands in the wrong place: {line!r}")
    if len(cells) != 1 + len(columns):
        raise ValueError(f"a row must have {1 + len(columns)} cells, got {line!r}")
    if not TRIAL.fullmatch(cells[0][0]):
        raise ValueError(f"a row must begin with its trial's id, got {line!r}")
    values = {}
    for (name, kind), cell in zip(columns, cells[1:]):
        if cell[0]:
            values[name] = parse_cell(cell[0], cell[1], kind, name)
    return cells[0][0], values


def parse_cell(cell: str, quoted: str | None, kind: str, name: str) -> Any:
    """Return a cell's value, exactly typed. Raises ValueError."""
    if quoted is None:
        number = NUMBER.fullmatch(cell) if kind == "number" else None
        if number:
            value = float(cell) if number[1] or number[2] else int(cell)
            if abs(value) != math.inf:
                return value
        if kind == "boolean" and cell in ("true", "false"):
            return cell == "true"
    elif kind in ("string", "json"):
        text = quoted.replace('""', '"')
        return text if kind == "string" else json.loads(text, object_pairs_hook=distinct)
    raise ValueError(f"{name} must be a cell of type {kind}, got {cell}")
