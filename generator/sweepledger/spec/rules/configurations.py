"""Lists of assignments: where they stand, and what may stand beside them."""

import re
from collections.abc import Hashable, Iterator

from generator.problems import Problem
from generator.reader import Path, dotted, shown
from generator.spec.draft import Draft
from generator.spec.rules.choices import is_sound
from generator.spec.rules.parameters import wrong_name
from generator.spec.rules.sections import Section, once, sections
from generator.structs.names import environment_name
from generator.structs.values import canonical_json, identity

FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,250}\.csv", re.ASCII)
HEADER = -1
"""The row of a file above its first assignment."""
SOURCES = frozenset({"assignments", "file"})


def one_source(draft: Draft) -> Iterator[Problem]:
    """Assignments stand in the spec or in a file, never in both."""
    for section in _lists(draft):
        found = SOURCES & {*draft.names(*section.path)}
        if not found:
            message = "must be given with method: list, or file"
            hint = "for example assignments: [{learning_rate: 0.1}], or file: NAME.csv beside the spec"
            place: Path = (*section.path, "assignments")
            yield draft.problem(place, message, code="missing-key", hint=hint, at_key=True)
        elif found == SOURCES:
            message = "must not be given with assignments, got both"
            hint = "two lists are two blocks"
            yield draft.problem((*section.path, "file"), message, code="method-key", hint=hint, at_key=True)


def file_name(draft: Draft) -> Iterator[Problem]:
    """The file lies beside the spec, so that who sees one sees both."""
    for section in _lists(draft):
        name = draft.get(*section.path, "file", kind=str)
        if name is not None and not FILE_NAME.fullmatch(name):
            message = f"must be the name of a .csv file beside the spec, got {shown(name)}"
            hint = "without folders, for example assignments.csv"
            yield draft.problem((*section.path, "file"), message, code="list-file", hint=hint)


@once
def constant_parameters(draft: Draft) -> Iterator[Problem]:
    """Beside a list, parameters are what all its assignments have in common."""
    for section in _lists(draft):
        for leaf in section.leaves.values():
            keys = {*draft.names(*leaf.path)} - {"when"}
            kind = draft.get(*leaf.path, "distribution", kind=str) or "constant"
            if keys - {"value", "distribution"} or kind != "constant":
                message = f"must have one value with method: list, got {', '.join(sorted(keys))}"
                hint = "values that change from trial to trial stand in the assignments"
                yield draft.problem(leaf.path, message, code="list-domain", hint=hint, at_key=True)


def distinct(draft: Draft) -> Iterator[Problem]:
    """An assignment that is listed twice would be one trial."""
    for section in _lists(draft):
        first: dict[str, Path] = {}
        for place, assignment in draft.items(*section.path, "assignments"):
            if not isinstance(assignment, dict) or not _is_whole(draft, place, assignment):
                continue
            other = first.setdefault(canonical_json(assignment), place)
            if other != place:
                message = f"must differ from {dotted(other[len(section.path) :])}, got the same values"
                hint = "to run an assignment several times, set replicates"
                yield draft.problem(place, message, code="duplicate-assignment", hint=hint)


def columns(draft: Draft) -> Iterator[Problem]:
    """The names in a file's header are held to what is asked of those in a spec."""
    for section in _lists(draft):
        if section.table is None:
            continue
        first = {environment_name(name): name for name in (*section.leaves, *section.derived)}
        for name in section.table.names:
            other = first.setdefault(environment_name(name), name)
            if message := wrong_name(name):
                yield section.table.problem(HEADER, name, message, code="parameter-name")
            elif other != name or name in section.derived:
                message = f"must differ from {other!r} in more than case and signs, got {name!r}"
                hint = f"both would be the variable {environment_name(name)}"
                yield section.table.problem(HEADER, name, message, code="parameter-collision", hint=hint)


def distinct_rows(draft: Draft) -> Iterator[Problem]:
    """A line that stands twice in a file would be one trial."""
    for section in _lists(draft):
        first: dict[Hashable, int] = {}
        for number, row in enumerate(section.table.rows if section.table else ()):
            other = first.setdefault(tuple((name, identity(row[name])) for name in row), number)
            if other != number and section.table is not None:
                message = f"must differ from line {other + 2}, got the same values"
                hint = "to run an assignment several times, set replicates"
                name = next(iter(row), section.table.names[0])
                yield section.table.problem(number, name, message, code="duplicate-assignment", hint=hint)


def _lists(draft: Draft) -> Iterator[Section]:
    return (section for section in sections(draft) if section.method == "list")


def _is_whole(draft: Draft, place: Path, assignment: dict[str, object]) -> bool:
    places = [((*place, name), value) for name, value in assignment.items()]
    return all(each not in draft.broken and is_sound(draft, each, value) for each, value in places)
