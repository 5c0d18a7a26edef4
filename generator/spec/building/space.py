"""A search space: the parameters of one section of a spec, and what ties them together."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from generator.reader import Path
from generator.reader.expression import parse
from generator.spec.building.domains import domain, value
from generator.spec.draft import Draft
from generator.spec.rules.sections import Leaf, Section
from generator.structs.expression import mentions
from generator.structs.space import Condition, Constraint, Derived, Parameter, SearchSpace


def space(draft: Draft, section: Section) -> SearchSpace:
    """Build the space that a block searches; shared parameters come first."""
    return SearchSpace(
        parameters=tuple(_parameter(draft, leaf) for leaf in section.leaves.values()),
        zips=tuple(tuple(group) for group in draft.get(*section.path, "zip", kind=list) or ()),
        derived=tuple(_in_order(_derived(draft, (*section.path, "derived")))),
        constraints=tuple(_constraints(draft, (*section.path, "constraints"))),
    )


def _parameter(draft: Draft, leaf: Leaf) -> Parameter:
    conditions = (
        Condition(name, tuple(value(item) for item in (wanted if isinstance(wanted, list) else [wanted])))
        for path in leaf.conditions
        for name, wanted in _mapping(draft, path).items()
    )
    place = draft.place(leaf.path, at_key=True)
    return Parameter(leaf.name, domain(_mapping(draft, leaf.path)), tuple(conditions), place)


def _constraints(draft: Draft, path: Path) -> Iterator[Constraint]:
    for place, text in draft.items(*path):
        yield Constraint(parse(text), text, draft.place(place))


def _derived(draft: Draft, path: Path) -> Iterator[Derived]:
    for name, text in _mapping(draft, path).items():
        yield Derived(name, parse(text), text, draft.place((*path, name)))


def _in_order(written: Iterable[Derived]) -> Iterator[Derived]:
    """Give derived values so that each comes after those it uses, else as written. There is no cycle."""
    waiting = {derived.name: derived for derived in written}

    def ready(derived: Derived) -> Iterator[Derived]:
        for mentioned in mentions(derived.expression):
            if needed := waiting.pop(mentioned.name, None):
                yield from ready(needed)
        yield derived

    while waiting:
        yield from ready(waiting.pop(next(iter(waiting))))


def _mapping(draft: Draft, path: Path) -> Mapping[str, Any]:
    return draft.get(*path, kind=dict) or {}
