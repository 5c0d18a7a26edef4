"""Differences between two versions of a results or overlay file, by row and column. Pure.

A row is a trial if the file lists trials, otherwise a line; a column is a heading, a member or a byte.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from posixpath import commonprefix
from typing import Any

from sweepledger.formats import yaml
from sweepledger.formats.csv_cells import split_written_line
from sweepledger.formats.json import load as load_json

MOST_PER_FILE = 20
"""Maximum number of differences reported for one file."""
LONGEST_SHOWN = 80
ROW_NAME_COLUMNS = ("trial", "assignment")
"""Members and headings that name a row."""


@dataclass(frozen=True, slots=True, order=True)
class FileDifference:
    """One difference between a file and its expected content."""

    path: str
    row: str
    """A trial, `line 3`, or empty for the whole file."""
    column: str
    message: str
    """The rule and the actual value."""

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.path, self.row, self.column) if part)
        return f"{place}: {self.message}"


def file_differences(
    path: str, expected: bytes | None, actual: bytes | None, *, because: str
) -> tuple[FileDifference, ...]:
    """Return how a file differs from its expected content; `because` names the source: `by the records`."""
    if expected == actual:
        return ()
    if actual is None:
        return (FileDifference(path, "", "", f"must be there {because}, and is missing"),)
    if expected is None:
        return (FileDifference(path, "", "", f"must not be there {because}, and is"),)
    listed = []
    for row, column, must, got in _places(path, expected, actual):
        listed.append(
            FileDifference(
                path, row, column, f"must be {_format_value(must)} {because}, got {_format_value(got)}"
            )
        )
        if len(listed) == MOST_PER_FILE:
            listed.append(FileDifference(path, "", "", "differs in more places than are listed here"))
            break
    return tuple(listed)


_Place = tuple[str, str, Any, Any]
ABSENT = object()


def _places(path: str, expected: bytes, actual: bytes) -> Iterator[_Place]:
    readers: dict[str, Callable[[str, str], Iterator[_Place]]] = {
        "csv": _csv_places,
        "json": lambda must, got: _members("", load_json(must), load_json(got)),
        "jsonl": lambda must, got: _row_places(_records(must), _records(got), json.dumps),
        "yaml": lambda must, got: _members("", yaml.load(must), yaml.load(got)),
    }
    reader = readers.get(path.rpartition(".")[2])
    has_places = False
    try:
        for place in reader(expected.decode(), actual.decode()) if reader else ():
            has_places = True
            yield place
    except (ValueError, RecursionError):  # not text, or not of this format: it has no columns
        pass
    if not has_places:  # equal values in other bytes: spaces, order or escapes
        must, got = expected.splitlines(keepends=True), actual.splitlines(keepends=True)
        for number, (mine, theirs) in enumerate(zip_longest(must, got), start=1):
            if mine != theirs:
                left, right = (part or b"" for part in (mine, theirs))
                at = len(commonprefix([left, right]))
                must_be, is_now = (
                    ABSENT if part is None else part.decode(errors="backslashreplace")[max(0, at - 20) :]
                    for part in (mine, theirs)
                )
                yield f"line {number}", f"byte {at + 1}", must_be, is_now


def _csv_places(expected: str, actual: str) -> Iterator[_Place]:
    (head, *must), (other, *got) = cells_of(expected), cells_of(actual)
    for column in (*(Counter(head) - Counter(other)), *(Counter(other) - Counter(head))):
        yield "line 1", column, head.count(column), other.count(column)
    if head != other and Counter(head) == Counter(other):
        yield "line 1", "", ",".join(head), ",".join(other)
    yield from _row_places(_named(must, head), _named(got, other), _csv_line)


def _row_places(
    must: Sequence[tuple[str, Any]], got: Sequence[tuple[str, Any]], shown: Callable[[Any], str]
) -> Iterator[_Place]:
    for row, mine, theirs in _aligned(must, got):
        if mine is None or theirs is None:
            left, right = (ABSENT if part is None else shown(part) for part in (mine, theirs))
            yield row, "", left, right
        else:
            yield from ((row, column, left, right) for _, column, left, right in _members("", mine, theirs))


def cells_of(text: str) -> list[list[str]]:
    """Split a generated table into the cells of its lines, each as written; a malformed line is one cell."""
    lines = [split_written_line(line) or [line] for line in text.split("\n")]
    return lines[:-1] if lines[-1] in ([], [""]) else lines


def _csv_line(cells: Mapping[str, str | None]) -> str:
    return ",".join(cell for cell in cells.values() if cell is not None)


def _named(rows: Iterable[Sequence[str]], head: Sequence[str]) -> list[tuple[str, Mapping[str, str | None]]]:
    """Return the cells of rows by column; each row is named by its trial if the table has trials, else by its line."""
    has_names = head[:1] and head[0] in ROW_NAME_COLUMNS
    return [
        (
            cells[0] if has_names and cells and cells[0] else f"line {number}",
            {column or "": cell for column, cell in zip_longest(head, cells)},
        )
        for number, cells in enumerate(rows, start=2)
    ]


def _aligned(
    must: Sequence[tuple[str, Any]], got: Sequence[tuple[str, Any]]
) -> Iterator[tuple[str, Any | None, Any | None]]:
    """Pair rows by name, and rows without a partner by line: a renamed row stays on its line."""
    left, right = _by_occurrence(must), _by_occurrence(got)
    new = {line: (name, row) for (name, at), (line, row) in right.items() if (name, at) not in left}
    yield from ((key[0], row, right[key][1]) for key, (_, row) in left.items() if key in right)
    for key, (line, row) in left.items():
        if key not in right:
            yield key[0], row, new.pop(line, ("", None))[1]
    yield from ((name, None, row) for name, row in new.values())


def _by_occurrence(rows: Iterable[tuple[str, Any]]) -> dict[tuple[str, int], tuple[int, Any]]:
    """Return rows with their lines, by name and the number of earlier rows with this name."""
    named: Counter[str] = Counter()
    occurrences: dict[tuple[str, int], tuple[int, Any]] = {}
    for line, (name, row) in enumerate(rows):
        occurrences[name, named[name]] = line, row
        named[name] += 1
    return occurrences


def _records(text: str) -> list[tuple[str, Any]]:
    """Return the lines by trial; a line that is not JSON is text, so that the others can be compared."""
    records: list[tuple[str, Any]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line:
            try:
                value = load_json(line)
            except ValueError:
                value = line
            records.append((_trial(value) or f"line {number}", value))
    return records


def _members(row: str, must: Any, got: Any, column: str = "") -> Iterator[_Place]:
    """Compare two values recursively; a member that names a trial starts a row."""
    if type(must) is not type(got) or not isinstance(must, dict | list):
        if must != got or type(must) is not type(got):
            yield row, column, must, got
        return
    if isinstance(must, dict):
        pairs = [(str(key), must.get(key, ABSENT), got.get(key, ABSENT)) for key in {**must, **got}]
    elif all(_trial(item) for item in (*must, *got)):
        trials = ([(_trial(item), item) for item in part] for part in (must, got))
        pairs = [
            ("", ABSENT if mine is None else mine, ABSENT if theirs is None else theirs)
            for _, mine, theirs in _aligned(*trials)
        ]
    else:
        pairs = [(str(place), *pair) for place, pair in enumerate(zip_longest(must, got, fillvalue=ABSENT))]
    for key, mine, theirs in pairs:
        named = _trial(mine) or _trial(theirs)
        yield from _members(named or row, mine, theirs, "" if named else f"{column}.{key}".lstrip("."))


def _trial(value: Any) -> str:
    name = value.get("trial") if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""


def _format_value(value: Any) -> str:
    if value is ABSENT or value is None:
        return "nothing" if value is ABSENT else "null"
    text = repr(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
