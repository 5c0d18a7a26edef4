"""Names of parameters and derived values."""

from collections.abc import Iterator

from generator.formats.table import REPLICATE_COLUMN, TRIAL_COLUMN
from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.draft import Draft
from generator.spec.rules.sections import Section, groups, once, sections
from generator.structs.names import PARAMETER_NAME, environment_name


@once
def names(draft: Draft) -> Iterator[Problem]:
    """A name becomes an option, an environment variable, a CSV column and a JSON key."""
    for section in sections(draft):
        for name, place in _places(section):
            if place not in draft.document.unread and (message := wrong_name(name)):
                yield draft.problem(place, message, code="parameter-name", at_key=True)


@once
def collisions(draft: Draft) -> Iterator[Problem]:
    """Two names must not share an environment variable."""
    for section in sections(draft):
        first: dict[str, tuple[str, Path]] = {}
        for name, place in _places(section):
            other, written_at = first.setdefault(environment_name(name), (name, place))
            if other == name and (place == written_at or "assignments" in place):
                continue
            line = draft.document.key_mark(written_at).line
            if other == name:
                message = f"must differ from the parameter at line {line}, got {name!r}"
                hint = "a derived value has a name of its own"
            else:
                message = (
                    f"must differ from {other!r} (line {line}) in more than case and signs, got {name!r}"
                )
                hint = f"both would be the variable {environment_name(name)}"
            yield draft.problem(place, message, code="parameter-collision", hint=hint, at_key=True)


def repeated(draft: Draft) -> Iterator[Problem]:
    """One name can be written in two ways, nested and dotted, but only once."""
    for group in groups(draft):
        first: dict[str, Path] = {}
        for leaf in group:
            other = first.setdefault(leaf.name, leaf.path)
            if other != leaf.path:
                line = draft.document.key_mark(other).line
                message = f"must differ from the parameter at line {line}, got {leaf.name!r} again"
                hint = "nested parameters have dotted names: one of the two is too much"
                yield draft.problem(leaf.path, message, code="parameter-collision", hint=hint, at_key=True)


@once
def nesting(draft: Draft) -> Iterator[Problem]:
    """What has a value cannot hold parameters too: `a` and `a.b` would be one key with two meanings."""
    for section in sections(draft):
        places = dict(_places(section))
        for name, place in places.items():
            parts = name.split(".")
            for end in range(1, len(parts)):
                holder = ".".join(parts[:end])
                if holder in places:
                    line = draft.document.key_mark(places[holder]).line
                    message = f"must not be inside {holder!r} (line {line}), which is a value, got {name!r}"
                    hint = f"in nested form {holder} would be both a value and a mapping; rename one"
                    yield draft.problem(place, message, code="parameter-nesting", hint=hint, at_key=True)


def _places(section: Section) -> list[tuple[str, Path]]:
    """List every name of a section with the place of its key; a listed name at its first place."""
    parameters = [(leaf.name, leaf.path) for leaf in section.leaves.values()]
    listed = [(name, places[0]) for name, places in section.listed.items()]
    resource = [] if section.resource is None else [(section.resource, ("resource", "parameter"))]
    return [
        *parameters,
        *listed,
        *resource,
        *((name, (*section.path, "derived", name)) for name in section.derived),
    ]


def wrong_name(name: str) -> str | None:
    """Say what is wrong with a name by itself, or None."""
    parts = name.split(".")
    if not PARAMETER_NAME.fullmatch(name):
        return (
            "must begin with a letter and hold at most 63 letters, digits and any of _ . -, "
            f"got {shown(name)}"
        )
    if name in {TRIAL_COLUMN, REPLICATE_COLUMN}:
        return f"must not be {name!r}, a column that every table may have"
    if "" in parts or any(part.startswith("__") for part in parts):
        return f"must have a name on both sides of a dot and none that begins with __, got {name!r}"
    return None
