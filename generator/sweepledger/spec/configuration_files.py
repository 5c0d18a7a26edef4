"""The file of configurations next to a spec, whose texts are checked like values in the spec."""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import PurePosixPath

from sweepledger.problems import Problem
from sweepledger.reader import safe_repr
from sweepledger.reader.configurations import ConfigurationTable, read_configurations
from sweepledger.reader.strict_yaml import MAX_PROBLEMS
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.command import TEMPLATE_SIGNS
from sweepledger.spec.rules.domains import LONGEST_VALUE

FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,250}\.csv", re.ASCII)
SIGN_BYTES = tuple(sign.encode() for sign in TEMPLATE_SIGNS)

SiblingReader = Callable[[str], bytes | None]
"""Reads a file in the folder of the spec; None if there is no regular file of this name."""


def no_files(name: str) -> bytes | None:  # noqa: ARG001 - what any other folder answers depends on it
    """Return None for every name: the spec has no folder."""
    return None


def read_table(draft: Draft, beside: SiblingReader) -> tuple[ConfigurationTable | None, tuple[Problem, ...]]:
    """Return the file of configurations that a draft names, if it can be read, and its problems."""
    name = draft.get("assignments", kind=str)
    if name is None:
        return None, ()
    if not FILE_NAME.fullmatch(name):
        message = f"must be the name of a .csv file next to the spec, got {safe_repr(name)}"
        hint = "without folders, for example assignments.csv"
        return None, (draft.problem(("assignments",), message, code="list-file", hint=hint),)
    path, content = str(PurePosixPath(draft.document.file).with_name(name)), beside(name)
    if content is None:
        message = f"must be a file next to the spec, but there is no {safe_repr(path)}"
        hint = "it must be a regular file in the same folder; links are not followed"
        return None, (draft.problem(("assignments",), message, code="list-file", hint=hint),)
    table = read_configurations(content, path)
    if not isinstance(table, ConfigurationTable):
        return None, table
    return table, tuple(islice(_text_problems(table), MAX_PROBLEMS + 1))


def _text_problems(table: ConfigurationTable) -> Iterator[Problem]:
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
