"""Configurations listed in a spec or in a file next to it (method: list)."""

from collections.abc import Hashable, Iterator

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, format_path
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.domains import is_sound_value
from sweepledger.spec.rules.names import parameter_name_error
from sweepledger.spec.sections import search_section
from sweepledger.structs.methods import LIST
from sweepledger.structs.names import environment_name
from sweepledger.structs.values import canonical_json, identity

HEADER_ROW = -1
"""The row of a file's header."""


def constant_parameters(draft: Draft) -> Iterator[Problem]:
    """With `method: list`, `parameters` contains only constants."""
    section = search_section(draft)
    if section.method != LIST:
        return
    for leaf in section.leaves.values():
        keys = {*draft.names(*leaf.path)} - {"when"}
        kind = draft.get(*leaf.path, "distribution", kind=str) or "constant"
        if keys - {"value", "distribution"} or kind != "constant":
            message = f"must have one value with method: list, got {', '.join(sorted(keys))}"
            hint = "values that differ between trials belong in assignments"
            yield draft.problem(leaf.path, message, code="list-domain", hint=hint, at_key=True)


def distinct_configurations(draft: Draft) -> Iterator[Problem]:
    """Configurations differ: equal ones would be one trial."""
    section = search_section(draft)
    if section.method != LIST:
        return
    first: dict[str, DocumentPath] = {}
    for place, assignment in draft.items("assignments"):
        if not isinstance(assignment, dict) or not _is_whole(draft, place, assignment):
            continue
        other = first.setdefault(canonical_json(assignment), place)
        if other != place:
            message = f"must differ from {format_path(other)}, got the same values"
            hint = "to run a configuration several times, set replicates"
            yield draft.problem(place, message, code="duplicate-value", hint=hint)


def column_names(draft: Draft) -> Iterator[Problem]:
    """The names in a file's header follow the rules for names in a spec."""
    section = search_section(draft)
    if section.method != LIST:
        return
    if section.table is None:
        return
    first = {environment_name(name): name for name in (*section.leaves, *section.derived)}
    for name in section.table.names:
        other = first.setdefault(environment_name(name), name)
        if message := parameter_name_error(name):
            yield section.table.problem(HEADER_ROW, name, message, code="parameter-name")
        elif other != name or name in section.derived:
            message = f"must differ from {other!r} in more than case and punctuation, got {name!r}"
            hint = f"both would be the variable {environment_name(name)}"
            yield section.table.problem(HEADER_ROW, name, message, code="parameter-collision", hint=hint)


def distinct_rows(draft: Draft) -> Iterator[Problem]:
    """The lines of a file differ: equal ones would be one trial."""
    section = search_section(draft)
    if section.method != LIST:
        return
    first: dict[Hashable, int] = {}
    for number, row in enumerate(section.table.rows if section.table else ()):
        other = first.setdefault(tuple((name, identity(row[name])) for name in row), number)
        if other != number and section.table is not None:
            message = f"must differ from line {other + 2}, got the same values"
            hint = "to run a configuration several times, set replicates"
            name = next(iter(row), section.table.names[0])
            yield section.table.problem(number, name, message, code="duplicate-value", hint=hint)


def _is_whole(draft: Draft, place: DocumentPath, assignment: dict[str, object]) -> bool:
    places = [((*place, name), value) for name, value in assignment.items()]
    return all(each not in draft.broken and is_sound_value(draft, each, value) for each, value in places)
