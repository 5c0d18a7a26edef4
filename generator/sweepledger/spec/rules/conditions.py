"""Conditions: a parameter that exists only where others have certain values."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from generator.problems import Problem
from generator.reader import Path, cut, shown
from generator.spec.draft import Draft
from generator.spec.nearest import did_you_mean
from generator.spec.rules.bounds import number
from generator.spec.rules.choices import is_sound, said
from generator.spec.rules.forms import range_of
from generator.spec.rules.sections import Leaf, Section, once, sections
from generator.structs.values import identity

Found = tuple[Path, Problem]
"""What is wrong, and where, as a path."""

IN_VALUES = frozenset({"uniform", "int_uniform", "q_uniform"})
"""Distributions whose bounds are values."""

FEW_VALUES = 8
"""As many as a hint can list."""


@once
def parents(draft: Draft) -> Iterator[Problem]:
    """A condition asks for another parameter, by its full name."""
    for section in sections(draft):
        for place, name in _asked(draft, section):
            if name in section.derived:
                message = f"must be the name of a parameter, got the derived value {name!r}"
                hint = "conditions choose before values are derived; ask for the parameters it is made of"
                yield draft.problem(place, message, code="unknown-parameter", hint=hint, at_key=True)
            elif section.is_whole and name not in section.parameters:
                message = f"must be the name of a parameter, got {shown(name)}"
                nearest = _parent_hint(name, section)
                yield draft.problem(place, message, code="unknown-parameter", hint=nearest, at_key=True)


@once
def cycles(draft: Draft) -> Iterator[Problem]:
    """Some parameter of a chain of conditions must exist by itself."""
    for section in sections(draft):
        needs = {
            leaf.name: {name: place for when in leaf.conditions for place, name in _keys(draft, when)}
            for leaf in section.leaves.values()
        }
        for chain in rings({name: list(asked) for name, asked in needs.items()}):
            place = needs[chain[0]][chain[1]]
            if len(chain) == 2:  # noqa: PLR2004 - the parameter and itself again
                message = f"must ask for another parameter, got {chain[0]!r} itself"
            else:
                message = f"must not lead back to itself, got {' needs '.join(map(repr, chain))}"
            hint = "one of them must exist without a condition"
            yield draft.problem(place, message, code="when-cycle", hint=hint, at_key=True)


def reachable(draft: Draft) -> Iterator[Problem]:
    """A value that the parent never has would be a parameter that never exists."""
    yield from _in_every_block(draft, _unreachable)


def telling(draft: Draft) -> Iterator[Problem]:
    """A condition that always holds says nothing."""
    yield from _in_every_block(draft, _always)


def _in_every_block(draft: Draft, find: Callable[[Draft, Section], Iterator[Found]]) -> Iterator[Problem]:
    """Say what is wrong with a shared condition only if it is so for all who share it."""
    asking: Counter[Path] = Counter()
    finding: dict[Path, list[Problem]] = {}
    for section in sections(draft):
        places = {place for place, _ in _asked(draft, section)}
        asking.update(places | {at for place in places for at, _ in _wanted(draft, place)})
        for at, problem in find(draft, section):
            finding.setdefault(at, []).append(problem)
    yield from (problems[0] for at, problems in finding.items() if len(problems) == asking[at])


def _unreachable(draft: Draft, section: Section) -> Iterator[Found]:
    for place, name in _asked(draft, section):
        if _is_unwrapped(draft, section, name, place):
            message = f"must be a list of values that {name!r} can have, got one value that is a list"
            written = cut(f"write {[draft.get(*place, kind=list)]!r}")
            yield place, draft.problem(place, message, code="when-unreachable", hint=written)
            continue
        for at, value in _wanted(draft, place):
            if is_sound(draft, at, value) and not _may_be(draft, section, name, value):
                message = f"must be a value that {name!r} can have, got {said(value)}"
                hint = _values_hint(draft, section, name, value)
                yield at, draft.problem(at, message, code="when-unreachable", hint=hint)


def _always(draft: Draft, section: Section) -> Iterator[Found]:
    for place, name in _asked(draft, section):
        parent = section.leaves.get(name)
        values = _written(draft, parent) if parent else None
        if values is None or parent is None or parent.conditions or section.method == "list":
            continue
        wanted = {identity(value) for at, value in _wanted(draft, place) if is_sound(draft, at, value)}
        if {identity(value) for value in values} <= wanted:
            message = f"the condition holds for every value of {name!r}"
            hint = "delete it, or leave out the values that it should not hold for"
            yield place, draft.warning(place, message, code="when-always", hint=hint, at_key=True)


def rings(needs: dict[str, list[str]]) -> Iterator[list[str]]:
    """Find chains of names that end where they began, one for each name that is first met in one."""
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


def _asked(draft: Draft, section: Section) -> Iterator[tuple[Path, str]]:
    """List the conditions of a section: where each stands, and the parameter it asks for."""
    for when in dict.fromkeys(when for leaf in section.leaves.values() for when in leaf.conditions):
        yield from _keys(draft, when)


def _keys(draft: Draft, when: Path) -> Iterator[tuple[Path, str]]:
    places = (((*when, name), name) for name in draft.names(*when))
    yield from ((place, name) for place, name in places if place not in draft.document.unread)


def _wanted(draft: Draft, place: Path) -> list[tuple[Path, Any]]:
    if place in draft.broken:
        return []
    items = draft.get(*place, kind=list)
    return [(place, draft.get(*place, kind=object))] if items is None else list(draft.items(*place))


def _may_be(draft: Draft, section: Section, name: str, value: Any) -> bool:
    """Tell whether a parameter can have a value; true where that cannot be said."""
    values = _values(draft, section, name)
    if values is not None:
        return identity(value) in {identity(each) for each in values}
    kind, keys = _range(draft, section, name)
    if not kind or not section.is_whole:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float) or _is_drawn(kind, keys):
        return False
    low, high = number(keys, "min"), number(keys, "max")
    if kind not in IN_VALUES or low is None or high is None:
        return True
    is_one = kind != "int_uniform" or "count" in keys or float(value).is_integer()
    return low <= value <= high and is_one


def _range(draft: Draft, section: Section, name: str) -> tuple[str, dict[str, Any]]:
    leaf = section.leaves.get(name)
    return (range_of(draft, leaf) if leaf else None) or ("", {})


def _is_drawn(kind: str, keys: dict[str, Any]) -> bool:
    """Tell whether a parameter is a real number drawn from a continuum."""
    return kind != "int_uniform" and not kind.startswith("q_") and not {"step", "count"} & keys.keys()


def _is_unwrapped(draft: Draft, section: Section, name: str, place: Path) -> bool:
    """Tell whether a condition asks for one value that is a list, without the list around it."""
    items, values = draft.get(*place, kind=list), _values(draft, section, name)
    if items is None or values is None or not is_sound(draft, place, items):
        return False
    flat = not any(isinstance(item, list | dict) for item in items)
    return flat and identity(items) in {identity(each) for each in values}


def _values(draft: Draft, section: Section, name: str) -> list[Any] | None:
    """List what a parameter can be; None where that is no list of values, or some cannot be read."""
    leaf = section.leaves.get(name)
    written = _written(draft, leaf) if leaf else []
    listed = _at(draft, section.listed.get(name, []))
    if not section.is_whole or name not in section.parameters or written is None or listed is None:
        return None
    rows = section.table.rows if section.table else ()
    return [*written, *listed, *(row[name] for row in rows if name in row)]


def _written(draft: Draft, leaf: Leaf) -> list[Any] | None:
    if "value" in draft.names(*leaf.path):
        return _at(draft, [(*leaf.path, "value")])
    values = draft.get(*leaf.path, "values", kind=list)
    return None if values is None else _at(draft, [(*leaf.path, "values", n) for n in range(len(values))])


def _at(draft: Draft, places: list[Path]) -> list[Any] | None:
    """Give the values at places; None if some cannot be read."""
    values = [draft.get(*place, kind=object) for place in places]
    pairs = zip(places, values, strict=True)
    is_whole = all(place not in draft.broken and is_sound(draft, place, value) for place, value in pairs)
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
            return "a number that is drawn is never exactly this one; add step or count, or use a constraint"
        return f"it is a number from {shown(keys.get('min'))} to {shown(keys.get('max'))}"
    texts = [each for each in values if isinstance(each, str)]
    if isinstance(value, str) and len(texts) == len(values):
        return did_you_mean(value, texts)
    written = ", ".join(said(each) for each in values[:FEW_VALUES])
    return f"values: {cut(written)}" if len(values) <= FEW_VALUES else None
