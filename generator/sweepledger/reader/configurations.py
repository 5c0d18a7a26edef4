"""Configuration lists, CSV files that authors write: a header, then one physical line per configuration.

They are read as strictly as specs. A bare cell has the meaning of a plain scalar in YAML, a quoted cell is text,
and an empty cell is an absent value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from types import MappingProxyType

from sweepledger.formats.csv_cells import split_line
from sweepledger.problems import MAX_PROBLEMS, Problem, limit_problems
from sweepledger.reader import characters
from sweepledger.reader.safe_repr import safe_repr, truncate
from sweepledger.reader.scalars import Refusal, resolve_scalar
from sweepledger.structs.space import MAX_TRIALS
from sweepledger.structs.values import Scalar, Value

MAX_LIST_BYTES = 16 * 1024 * 1024
MAX_LIST_LINES = MAX_TRIALS

MAX_LIST_COLUMNS = 100
MAX_LIST_CELLS = 2_000_000
"""Lines times columns: about a hundred megabytes of values in memory."""
MAX_LINE_BYTES = 64 * 1024

MAX_CACHED_MEANINGS = 10_000
"""Columns repeat values; sampled ones hardly do."""

NOT_PLAIN = re.compile(r"[][{}#&*!|>%@`']|[-?:](?:\s|$)|.*(?::(?:\s|$)|\s#|\t)")
"""Beginnings and contents that no plain YAML scalar has."""


@dataclass(frozen=True, slots=True)
class ConfigurationTable:
    """The content of a configuration list."""

    file: str
    lines: tuple[str, ...]
    """Lines without line ends: equal for files that differ in line ends only."""
    names: tuple[str, ...]
    rows: tuple[Mapping[str, Value], ...]
    """One mapping per configuration, without absent values."""

    @property
    def text(self) -> str:
        """The file with LF line ends."""
        return "\n".join(self.lines)

    def problem(self, row: int, name: str, message: str, *, code: str, hint: str | None = None) -> Problem:
        """Return a problem of a value."""
        line = row + 2
        cells = split_line(self.lines[line - 1])
        assert cells is not None
        return Problem(self.file, line, cells[self.names.index(name)].column, name, message, code, hint)


@dataclass(slots=True)
class _Reader:
    file: str
    problems: list[Problem] = field(default_factory=list)

    def header(self, line: str, rows: int) -> tuple[str, ...]:
        """Return the names of the columns; report problems of the header and of the file's size."""
        if not rows:
            self.report(0, 0, "must have a header and at least one assignment", "a line an assignment")
        if not rows or self.is_long(1, line):
            return ()
        names: dict[str, None] = {}
        for cell in split_line(line) or ():
            name = cell.bare if cell.quoted is None else cell.quoted
            if not name:
                hint = "the first line names each column"
                self.report(1, cell.column, "must be the name of a column, got nothing", hint)
            elif name in names:
                message = f"must not repeat a column, got {safe_repr(name)}"
                self.report(1, cell.column, message, "keep one of them")
            names[name] = None
        if not names:
            self.report(1, 1, _malformed(line), "the first line names each column: lr,width")
        if len(names) > MAX_LIST_COLUMNS:
            self.report(1, 1, f"must have at most {MAX_LIST_COLUMNS} columns, got {len(names)}")
        elif len(names) * rows > MAX_LIST_CELLS:
            message = f"must have at most {MAX_LIST_CELLS} cells, got {rows} lines of {len(names)}"
            self.report(0, 0, message, code="too-large")
        return tuple(names)

    def is_long(self, number: int, line: str) -> bool:
        """Return whether a line is too long; report it if so."""
        size = len(line) if line.isascii() else len(line.encode())
        if size > MAX_LINE_BYTES:
            message = f"must be at most {MAX_LINE_BYTES} bytes, got a line of {size}"
            self.report(number, 1, message, code="too-large")
        return size > MAX_LINE_BYTES

    def row(self, number: int, text: str, names: tuple[str, ...]) -> Mapping[str, Value]:
        """Return one configuration."""
        if self.is_long(number, text):
            return {}
        cells = split_line(text)
        if cells is None:
            self.report(number, 1, _malformed(text), 'text is written "so"; a quote in it is doubled')
            return {}
        if len(cells) != len(names) or not text.strip():
            message = f"must have {len(names)} cells, as the header, got {len(cells) if text.strip() else 0}"
            self.report(number, 1, message, "an empty cell stands for an absent value")
            return {}
        values: dict[str, Value] = {}
        for name, cell in zip(names, cells, strict=True):
            if cell.quoted is None and not cell.bare:
                continue  # an absent value
            meaning = _meaning(cell.bare) if cell.quoted is None else cell.quoted
            if isinstance(meaning, Refusal):
                self.report(number, cell.column, meaning.message, meaning.hint, code=meaning.code, name=name)
            else:
                values[name] = meaning
        return MappingProxyType(values)

    def report(
        self,
        line: int,
        column: int,
        message: str,
        hint: str | None = None,
        *,
        code: str = "list-file",
        name: str = "",
    ) -> None:
        """Add a problem."""
        self.problems.append(Problem(self.file, line, column, name, message, code, hint))


def read_configurations(content: bytes, file: str) -> ConfigurationTable | tuple[Problem, ...]:
    """Return the configurations in a file, or its problems; `file` is its path in messages."""
    reader = _Reader(file)
    lines = content.count(b"\n")
    if len(content) > MAX_LIST_BYTES:
        reader.report(0, 0, f"must be at most {MAX_LIST_BYTES} bytes, got more", code="too-large")
    elif lines > MAX_LIST_LINES + 1:
        message = f"must have at most {MAX_LIST_LINES} lines after the header, got {lines - 1}"
        reader.report(0, 0, message, code="too-large")
    if reader.problems:
        return tuple(reader.problems)
    text = characters.decode(content, file)
    if isinstance(text, Problem):
        return (text,)
    if invisible := list(islice(characters.invisible_problems(text, file), MAX_PROBLEMS + 1)):
        return limit_problems(invisible)
    header, *rest = text.removesuffix("\n").split("\n")
    names = reader.header(header, len(rest))
    if reader.problems:
        return limit_problems(reader.problems)
    rows: list[Mapping[str, Value]] = []
    for number, line in enumerate(rest, start=2):
        rows.append(reader.row(number, line, names))
        if len(reader.problems) > MAX_PROBLEMS:
            break
    return limit_problems(reader.problems) or ConfigurationTable(file, (header, *rest), names, tuple(rows))


@lru_cache(MAX_CACHED_MEANINGS)
def _meaning(text: str) -> Scalar | Refusal:
    if NOT_PLAIN.match(text):
        hint = f'write "{truncate(text)}" for the text'
        return Refusal(
            f"must be a plain YAML value or in quotes, got {truncate(text)}", hint, code="list-file"
        )
    return resolve_scalar(text)


def _malformed(line: str) -> str:
    return f"must be cells with commas between, got {safe_repr(line)}"
