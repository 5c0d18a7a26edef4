"""Configurations listed in a spec, or in a file next to it, whose texts are checked like values in the spec."""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import islice
from pathlib import PurePosixPath

from sweepledger.distributions import FORMS
from sweepledger.problems import MAX_PROBLEMS, Problem
from sweepledger.reader import format_path, safe_repr
from sweepledger.reader.configurations import ConfigurationTable, read_configurations
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.domains import LONGEST_VALUE
from sweepledger.spec.rules.program import TEMPLATE_SIGNS
from sweepledger.structs.methods import LIST
from sweepledger.structs.values import Value, identity

FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,250}\.csv", re.ASCII)

SiblingReader = Callable[[str], bytes | None]
"""Reads a file in the folder of the spec; None if there is no regular file of this name."""


def read_table(draft: Draft, beside: SiblingReader) -> tuple[ConfigurationTable | None, tuple[Problem, ...]]:
    """Return the file of configurations that a draft names, if readable, and its problems."""
    name = draft.text("assignments")
    if name is None:
        return None, ()
    if not FILE_NAME.fullmatch(name):
        message = "must be the name of a .csv file next to the spec"
        hint = "without folders, for example assignments.csv"
        return None, (draft.wrong(("assignments",), message, "list-file", hint),)
    path, content = str(PurePosixPath(draft.document.file).with_name(name)), beside(name)
    if content is None:
        message = f"must be a file next to the spec, but there is no {safe_repr(path)}"
        hint = "it must be a regular file in the same folder; links are not followed"
        return None, (draft.problem(("assignments",), message, "list-file", hint),)
    table = read_configurations(content, path)
    if not isinstance(table, ConfigurationTable):
        return None, table
    return table, tuple(islice(_text_problems(table), MAX_PROBLEMS + 1))


def _text_problems(table: ConfigurationTable) -> Iterator[Problem]:
    if max(map(len, table.lines)) <= LONGEST_VALUE and not any(
        any(sign in line for sign in TEMPLATE_SIGNS) for line in table.lines
    ):
        return  # nearly always, and in a hundredth of the time
    cells = ((row, *cell) for row, values in enumerate(table.rows) for cell in values.items())
    for row, name, text in cells:
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


def constant_parameters(draft: Draft) -> Iterator[Problem]:
    """With `method: list`, `parameters` contains only constants."""
    for leaf in draft.parameters.values() if draft.method == LIST else ():
        keys = leaf.written.keys() - {"when"}
        form = FORMS.get(str(leaf.keys.get("distribution")))
        if keys - {"value", "distribution"} or (form and "value" not in form.keys):
            message = f"must have one value with method: list, got {', '.join(sorted(keys))}"
            hint = "values that differ between trials belong in assignments"
            yield draft.at_key(leaf.path, message, "list-domain", hint)


def distinct_configurations(draft: Draft) -> Iterator[Problem]:
    """Configurations differ, in the spec and in a file: equal ones would be one trial."""
    first: dict[Hashable, str] = {}
    hint = "to run a configuration several times, set replicates"
    for place, assignment in draft.items("assignments") if draft.method == LIST else ():
        if assignment and draft.is_sound(*place):
            where = format_path(place)
            other = first.setdefault(_identity(assignment), where)
            if other != where:
                message = f"must differ from {other}, got the same values"
                yield draft.problem(place, message, "duplicate-value", hint)
    table = draft.table if draft.method == LIST else None
    for number, row in enumerate(table.rows if table else ()):
        where = f"line {number + 2}"
        other = first.setdefault(_identity(row), where)
        if other != where and table is not None:
            message, name = f"must differ from {other}, got the same values", next(iter(row), table.names[0])
            yield table.problem(number, name, message, code="duplicate-value", hint=hint)


def _identity(configuration: Mapping[str, Value]) -> Hashable:
    return frozenset((name, identity(value)) for name, value in configuration.items())
