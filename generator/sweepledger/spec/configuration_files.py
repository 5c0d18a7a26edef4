"""The files of configurations next to a spec: read once each, and checked like values in the spec."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.reader.configurations import (
    MAX_LIST_BYTES,
    MAX_LIST_CELLS,
    MAX_LIST_LINES,
    ConfigurationTable,
    read_configurations,
)
from sweepledger.reader.strict_yaml import MAX_PROBLEMS
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.command import TEMPLATE_SIGNS
from sweepledger.spec.rules.configurations import FILE_NAME
from sweepledger.spec.rules.domains import LONGEST_VALUE

SIGN_BYTES = tuple(sign.encode() for sign in TEMPLATE_SIGNS)

SiblingReader = Callable[[str], bytes | None]
"""Reads a file in the folder of the spec; None if there is no regular file of this name."""


def no_files(name: str) -> bytes | None:  # noqa: ARG001 - what any other folder answers depends on it
    """Return None for every name: the spec has no folder."""
    return None


def read_tables(
    draft: Draft, beside: SiblingReader
) -> tuple[Mapping[DocumentPath, ConfigurationTable], tuple[Problem, ...]]:
    """Return the files of configurations that a draft names, and their problems."""
    reading = _TableReader(draft, beside)
    blocks: list[DocumentPath] = [place for place, _ in draft.items("blocks")]
    for path in ((), *blocks):
        name = draft.get(*path, "file", kind=str)
        if name is not None and FILE_NAME.fullmatch(name) and not reading.take(path, name):
            break
    return reading.tables, tuple(dict.fromkeys(reading.problems))


@dataclass(slots=True)
class _TableReader:
    """Reads each file once, even if several blocks name it, and at most as much as a sweep can use."""

    draft: Draft
    beside: SiblingReader
    known: dict[str, ConfigurationTable | tuple[Problem, ...] | None] = field(default_factory=dict)
    """By name; None if the file does not exist."""
    tables: dict[DocumentPath, ConfigurationTable] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    bytes_left: int = MAX_LIST_BYTES
    lines_left: int = MAX_LIST_LINES
    cells_left: int = MAX_LIST_CELLS

    def take(self, path: DocumentPath, name: str) -> bool:
        """Read the file that a section names; return whether another may be read."""
        place = (*path, "file")
        if name not in self.known:
            self.known[name] = self.read(name)
        match self.known[name]:
            case None:
                message = f"must be a file next to the spec, but there is no {safe_repr(self.path(name))}"
                hint = "it must be a regular file in the same folder; links are not followed"
                self.problems.append(self.draft.problem(place, message, code="list-file", hint=hint))
            case ConfigurationTable() as table:
                self.lines_left -= len(table.rows)
                self.cells_left -= table.size
                self.tables[path] = table
            case problems:
                self.problems += problems
        if min(self.bytes_left, self.lines_left, self.cells_left) >= 0:
            return True
        message = (
            f"must have, with the files before, at most {MAX_LIST_BYTES} bytes, "
            f"{MAX_LIST_LINES} lines and {MAX_LIST_CELLS} cells"
        )
        hint = "one sweep has no more trials; split it in two"
        self.problems.append(self.draft.problem(place, message, code="too-large", hint=hint))
        return False

    def read(self, name: str) -> ConfigurationTable | tuple[Problem, ...] | None:
        """Read a file by name, and check its texts."""
        content = self.beside(name)
        if content is None:
            return None
        self.bytes_left -= len(content)
        table = read_configurations(content, self.path(name))
        if isinstance(table, ConfigurationTable):
            self.problems += islice(_text_problems(table), MAX_PROBLEMS + 1)
        return table

    def path(self, name: str) -> str:
        """Return a file's path in the repository."""
        return str(PurePosixPath(self.draft.document.file).with_name(name))


def _text_problems(table: ConfigurationTable) -> Iterator[Problem]:
    """Check the texts of a table by the rules for texts in a spec."""
    if max(map(len, table.lines)) <= LONGEST_VALUE and not any(
        any(sign in line for sign in SIGN_BYTES) for line in table.lines
    ):
        return  # nearly always, and in a hundredth of the time
    for row, values in enumerate(table.rows):
        for name, text in values.items():
            if not isinstance(text, str):
                continue
            if len(text) > LONGEST_VALUE:
                message = f"must be at most {LONGEST_VALUE} characters, got {len(text)}"
                hint = "put it in a file of the code and sweep over the file's name"
                yield table.problem(row, name, message, code="value-too-long", hint=hint)
            if sign := next((sign for sign in TEMPLATE_SIGNS if sign in text), None):
                message = f"must not contain {sign!r}, got {safe_repr(text)}"
                hint = f"{TEMPLATE_SIGNS[sign]} in every manifest"
                yield table.problem(row, name, message, code="template-syntax", hint=hint)
