"""The search space: names, domains, values."""

from collections.abc import Iterator
from typing import Any

from generator.formats.table import REPLICATE_COLUMN, TRIAL_COLUMN
from generator.problems import Problem
from generator.reader import Path, cut, dotted, shown
from generator.spec.draft import Draft
from generator.spec.later import PARAMETER_KEYS
from generator.structs.names import PARAMETER_NAME, environment_name
from generator.structs.values import canonical_json

LONGEST_VALUE = 4096
"""Bytes of a value's JSON: a knob, no document; it stands in tables, arguments and messages."""


def names(draft: Draft) -> Iterator[Problem]:
    """A parameter's name becomes an option, an environment variable, a CSV column and a JSON key."""
    for name in draft.names("parameters"):
        place: Path = ("parameters", name)
        if place in draft.document.unread:
            continue
        parts = name.split(".")
        if not PARAMETER_NAME.fullmatch(name):
            message = (
                "must begin with a letter and hold at most 63 letters, digits and any of _ . -, "
                f"got {shown(name)}"
            )
            yield draft.problem(place, message, code="parameter-name", at_key=True)
        elif name in {TRIAL_COLUMN, REPLICATE_COLUMN}:
            message = f"must not be {name!r}, a column that every table may have"
            yield draft.problem(place, message, code="parameter-name", at_key=True)
        elif "" in parts or any(part.startswith("__") for part in parts):
            message = f"must have a name on both sides of a dot and none that begins with __, got {name!r}"
            yield draft.problem(place, message, code="parameter-name", at_key=True)


def collisions(draft: Draft) -> Iterator[Problem]:
    """Two parameters must not share an environment variable."""
    first: dict[str, str] = {}
    for name in draft.names("parameters"):
        variable = environment_name(name)
        if variable in first:
            other = first[variable]
            line = draft.document.key_mark(("parameters", other)).line
            message = f"must differ from {other!r} (line {line}) in more than case and signs, got {name!r}"
            hint = f"both would be the variable {variable}"
            place = ("parameters", name)
            yield draft.problem(place, message, code="parameter-collision", hint=hint, at_key=True)
        first.setdefault(variable, name)


def domains(draft: Draft) -> Iterator[Problem]:
    """A parameter has one value or several, never both or neither."""
    for name in draft.names("parameters"):
        domain = draft.get("parameters", name, kind=dict)
        if domain is None:
            continue
        both, neither = {"value", "values"} <= set(domain), not {"value", "values"} & set(domain)
        if both or (neither and not PARAMETER_KEYS & set(domain)):
            message = f"must have either value or values, got {'both' if both else 'neither'}"
            hint = "value is for every trial, values are tried in turn"
            place = ("parameters", name)
            yield draft.problem(place, message, code="parameter-domain", hint=hint, at_key=True)


def duplicates(draft: Draft) -> Iterator[Problem]:
    """Equal values would be two names for one trial."""
    for name in draft.names("parameters"):
        first: dict[str, tuple[Path, Any]] = {}
        for place, value in draft.items("parameters", name, "values"):
            if not _sound(draft, place, value):
                continue
            key = canonical_json(value)
            if key in first:
                path, other = first[key]
                message = f"must differ from {dotted(path[2:])} ({_written(other)}), got {_written(value)}"
                yield draft.problem(place, message, code="duplicate-value", hint="delete one of them")
            first.setdefault(key, (place, value))


def lengths(draft: Draft) -> Iterator[Problem]:
    """A value must fit into an argument and an environment variable."""
    for name in draft.names("parameters"):
        single: Path = ("parameters", name, "value")
        value = draft.get(*single, kind=object)
        for place, item in [(single, value), *draft.items("parameters", name, "values")]:
            if _sound(draft, place, item) and len(canonical_json(item)) > LONGEST_VALUE:
                message = f"must be at most {LONGEST_VALUE} bytes as JSON, got {len(canonical_json(item))}"
                hint = "put it in a file of the code and sweep over the file's name"
                yield draft.problem(place, message, code="value-too-long", hint=hint)


def _sound(draft: Draft, place: Path, value: object) -> bool:
    """Tell whether all of a value may be looked at: it is no mapping, and no item of it is broken."""
    items = range(len(value)) if isinstance(value, list) else ()
    return not isinstance(value, dict) and not any((*place, index) in draft.broken for index in items)


def _written(value: object) -> str:
    return cut(repr(value)) if isinstance(value, list) else shown(value)
