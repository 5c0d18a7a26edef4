"""Conditions: parameters that exist only if others have certain values."""

from collections.abc import Iterator
from typing import Any

from sweepledger.distributions import FORMS
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr, truncate
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.domains import distribution_of, is_sound_value, quote
from sweepledger.spec.sections import Leaf, Section, search_section
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs.methods import LIST
from sweepledger.structs.values import identity

"""Distributions whose bounds are values."""

FEW_VALUES = 8
"""Number of values that a hint lists at most."""


def parents(draft: Draft) -> Iterator[Problem]:
    """A condition names another parameter in full."""
    section = search_section(draft)
    for place, name in _conditions(draft, section):
        if name in section.derived:
            message = f"must be the name of a parameter, got the derived value {name!r}"
            hint = "conditions are evaluated before derived values; use the parameters it is computed from"
            yield draft.problem(place, message, code="unknown-parameter", hint=hint, at_key=True)
        elif section.is_whole and name not in section.parameters:
            message = f"must be the name of a parameter, got {safe_repr(name)}"
            nearest = _parent_hint(name, section)
            yield draft.problem(place, message, code="unknown-parameter", hint=nearest, at_key=True)


def cycles(draft: Draft) -> Iterator[Problem]:
    """Conditions have no cycle: one of the parameters must exist without a condition."""
    section = search_section(draft)
    needs = {
        leaf.name: {name: place for when in leaf.conditions for place, name in _keys(draft, when)}
        for leaf in section.leaves.values()
    }
    for chain in find_cycles({name: list(parents) for name, parents in needs.items()}):
        place = needs[chain[0]][chain[1]]
        if len(chain) == 2:  # noqa: PLR2004 - the parameter and itself again
            message = f"must name another parameter, got {chain[0]!r} itself"
        else:
            message = f"must not lead back to itself, got {' needs '.join(map(repr, chain))}"
        hint = "one of them must exist without a condition"
        yield draft.problem(place, message, code="dependency-cycle", hint=hint, at_key=True)


def reachable(draft: Draft) -> Iterator[Problem]:
    """A condition requires values that its parent can have."""
    section = search_section(draft)
    for place, name in _conditions(draft, section):
        if _is_unwrapped(draft, section, name, place):
            message = f"must be a list of values that {name!r} can have, got one value that is a list"
            written = truncate(f"write {[draft.get(*place, kind=list)]!r}")
            yield draft.problem(place, message, code="when-unreachable", hint=written)
            continue
        for at, value in _condition_values(draft, place):
            if is_sound_value(draft, at, value) and not _may_be(draft, section, name, value):
                message = f"must be a value that {name!r} can have, got {quote(value)}"
                hint = _values_hint(draft, section, name, value)
                yield draft.problem(at, message, code="when-unreachable", hint=hint)


def redundant(draft: Draft) -> Iterator[Problem]:
    """A condition that is always true has no effect."""
    section = search_section(draft)
    for place, name in _conditions(draft, section):
        parent = section.leaves.get(name)
        values = _own_values(draft, parent) if parent else None
        if values is None or parent is None or parent.conditions or section.method == LIST:
            continue
        wanted = {
            identity(value)
            for at, value in _condition_values(draft, place)
            if is_sound_value(draft, at, value)
        }
        if {identity(value) for value in values} <= wanted:
            message = f"the condition is true for every value of {name!r}"
            hint = "delete it, or remove the values for which it should be false"
            yield draft.warning(place, message, code="when-always", hint=hint, at_key=True)


def find_cycles(needs: dict[str, list[str]]) -> Iterator[list[str]]:
    """Yield cycles: chains of names that end where they began, each once."""
    done: set[str] = set()
    for start in needs:
        trail: list[str] = []
        steps = [iter([start])]
        while steps:
            name: str | None = next(steps[-1], None)
            if name is None:
                steps.pop()
                done |= {trail.pop()} if trail else set()
            elif name in trail:
                yield [*trail[trail.index(name) :], name]
            elif name in needs and name not in done:
                trail.append(name)
                steps.append(iter(needs[name]))


def _conditions(draft: Draft, section: Section) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the conditions of a section: the path of each, and the parameter that it names."""
    for when in dict.fromkeys(when for leaf in section.leaves.values() for when in leaf.conditions):
        yield from _keys(draft, when)


def _keys(draft: Draft, when: DocumentPath) -> Iterator[tuple[DocumentPath, str]]:
    places = (((*when, name), name) for name in draft.names(*when))
    yield from ((place, name) for place, name in places if place not in draft.document.unread)


def _condition_values(draft: Draft, place: DocumentPath) -> list[tuple[DocumentPath, Any]]:
    if place in draft.broken:
        return []
    items = draft.get(*place, kind=list)
    return [(place, draft.get(*place, kind=object))] if items is None else list(draft.items(*place))


def _may_be(draft: Draft, section: Section, name: str, value: Any) -> bool:
    """Return whether a parameter can have a value; true if that is unknown."""
    values = _values(draft, section, name)
    if values is not None:
        return identity(value) in {identity(each) for each in values}
    kind, keys = _range(draft, section, name)
    if not kind or not section.is_whole:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float) or _is_drawn(kind, keys):
        return False
    low, high = keys.get("min"), keys.get("max")
    if not FORMS[kind].is_linear_range or low is None or high is None:
        return True
    is_one = not FORMS[kind].is_integer or "count" in keys or float(value).is_integer()
    return low <= value <= high and is_one


def _range(draft: Draft, section: Section, name: str) -> tuple[str, dict[str, Any]]:
    leaf = section.leaves.get(name)
    return (distribution_of(draft, leaf) if leaf else None) or ("", {})


def _is_drawn(kind: str, keys: dict[str, Any]) -> bool:
    form = FORMS.get(kind)
    return form is None or not (form.is_integer or "q" in form.keys or {"step", "count"} & keys.keys())


def _is_unwrapped(draft: Draft, section: Section, name: str, place: DocumentPath) -> bool:
    """Return whether a condition gives a value that is a list without the list around it."""
    items, values = draft.get(*place, kind=list), _values(draft, section, name)
    if items is None or values is None or not is_sound_value(draft, place, items):
        return False
    flat = not any(isinstance(item, list | dict) for item in items)
    return flat and identity(items) in {identity(each) for each in values}


def _values(draft: Draft, section: Section, name: str) -> list[Any] | None:
    """Return the values of a parameter; None if it is not a list of values, or if some cannot be read."""
    leaf = section.leaves.get(name)
    written = _own_values(draft, leaf) if leaf else []
    listed = _at(draft, section.listed.get(name, []))
    if not section.is_whole or name not in section.parameters or written is None or listed is None:
        return None
    rows = section.table.rows if section.table else ()
    return [*written, *listed, *(row[name] for row in rows if name in row)]


def _own_values(draft: Draft, leaf: Leaf) -> list[Any] | None:
    if "value" in draft.names(*leaf.path):
        return _at(draft, [(*leaf.path, "value")])
    values = draft.get(*leaf.path, "values", kind=list)
    return None if values is None else _at(draft, [(*leaf.path, "values", n) for n in range(len(values))])


def _at(draft: Draft, places: list[DocumentPath]) -> list[Any] | None:
    """Return the values at paths; None if some cannot be read."""
    values = [draft.get(*place, kind=object) for place in places]
    pairs = zip(places, values, strict=True)
    is_whole = all(
        place not in draft.broken and is_sound_value(draft, place, value) for place, value in pairs
    )
    return values if is_whole else None


def _parent_hint(name: str, section: Section) -> str | None:
    ends = [known for known in section.leaves if known.endswith(f".{name}")]
    if len(ends) == 1:
        return f"nested names are written in full: {ends[0]}"
    return did_you_mean(name, section.parameters)


def _values_hint(draft: Draft, section: Section, name: str, value: Any) -> str | None:
    values = _values(draft, section, name)
    if values is None:
        kind, keys = _range(draft, section, name)
        if _is_drawn(kind, keys):
            return (
                "a drawn number is never exactly equal to this value; add step or count, or use a constraint"
            )
        return f"it is a number from {safe_repr(keys.get('min'))} to {safe_repr(keys.get('max'))}"
    texts = [each for each in values if isinstance(each, str)]
    if isinstance(value, str) and len(texts) == len(values):
        return did_you_mean(value, texts)
    written = ", ".join(quote(each) for each in values[:FEW_VALUES])
    return f"values: {truncate(written)}" if len(values) <= FEW_VALUES else None
