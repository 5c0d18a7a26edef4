"""The files of assignments beside a spec: found, read, and held to the rules of what stands in the spec."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from generator.problems import Problem
from generator.reader import Path, shown
from generator.reader.assignments import Table, read_assignments
from generator.spec.draft import Draft
from generator.spec.rules.choices import LONGEST_VALUE
from generator.spec.rules.listing import FILE_NAME
from generator.spec.rules.templates import SIGNS

Beside = Callable[[str], bytes | None]
"""Reads a file in the folder of the spec; None where no regular file has this name."""


def nothing(name: str) -> bytes | None:  # noqa: ARG001 - what any other folder answers depends on it
    """Find no file, whatever its name."""
    return None


def tables(draft: Draft, beside: Beside) -> tuple[Mapping[Path, Table], tuple[Problem, ...]]:
    """Read every file of assignments that a draft names, and tell what is wrong with each."""
    found: dict[Path, Table] = {}
    problems: list[Problem] = []
    blocks: list[Path] = [place for place, _ in draft.items("blocks")]
    for path in ((), *blocks):
        name = draft.get(*path, "file", kind=str)
        if name is None or not FILE_NAME.fullmatch(name):
            continue
        table = _read(draft, (*path, "file"), name, beside)
        if isinstance(table, Table):
            found[path] = table
            problems += _texts(table)
        else:
            problems += table
    return found, tuple(dict.fromkeys(problems))


def _read(draft: Draft, place: Path, name: str, beside: Beside) -> Table | tuple[Problem, ...]:
    content = beside(name)
    file = str(PurePosixPath(draft.document.file).with_name(name))
    if content is None:
        message = f"must be a file beside the spec, but there is no {shown(file)}"
        hint = "it must be a regular file in the same folder; links are not followed"
        return (draft.problem(place, message, code="list-file", hint=hint),)
    return read_assignments(content, file)


def _texts(table: Table) -> Iterator[Problem]:
    """Hold the texts of a table to what the rules ask of those in a spec."""
    if len(max(table.text.split("\n"), key=len)) <= LONGEST_VALUE and not _sign(table.text):
        return  # nearly always, and in a hundredth of the time
    for row, values in enumerate(table.rows):
        for name, text in values.items():
            if not isinstance(text, str):
                continue
            if len(text) > LONGEST_VALUE:
                message = f"must be at most {LONGEST_VALUE} characters, got {len(text)}"
                hint = "put it in a file of the code and sweep over the file's name"
                yield table.problem(row, name, message, code="value-too-long", hint=hint)
            if sign := _sign(text):
                message = f"must not hold {sign!r}, got {shown(text)}"
                hint = f"{SIGNS[sign]} wherever a manifest has it"
                yield table.problem(row, name, message, code="template-syntax", hint=hint)


def _sign(text: str) -> str | None:
    return next((sign for sign in SIGNS if sign in text), None)
