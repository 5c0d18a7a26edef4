"""The keys of a spec that describe its search, as written, with its parameters; and the space that they make."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sweepledger.distributions import build_domain
from sweepledger.expressions.parser import parse_expression
from sweepledger.reader import DocumentPath
from sweepledger.reader.configurations import ConfigurationTable
from sweepledger.spec.draft import Draft
from sweepledger.structs.expression import names_in
from sweepledger.structs.space import Condition, Constraint, DerivedValue, Parameter, SearchSpace
from sweepledger.structs.values import frozen_value


@dataclass(frozen=True, slots=True)
class Leaf:
    """A parameter that is not a group; nested ones have dotted names."""

    name: str
    path: DocumentPath
    conditions: tuple[DocumentPath, ...]
    """Paths of its conditions: those of the groups around it, and its own."""


@dataclass(frozen=True, slots=True)
class Section:
    """The keys of a spec that describe its search."""

    method: str | None
    leaves: dict[str, Leaf]
    derived: tuple[str, ...]
    listed: dict[str, list[DocumentPath]]
    """Names in `assignments`, and the paths of their values."""
    table: ConfigurationTable | None
    """The file of configurations; None if there is none, or if it cannot be read."""
    is_whole: bool
    """Whether all names are known, because everything could be read."""
    resource: str | None = None
    """The name of the parameter that an adaptive method sets."""

    @property
    def parameters(self) -> frozenset[str]:
        """The names that a condition may mention."""
        return frozenset((*self.leaves, *self.listed, *(self.table.names if self.table else ())))


def search_section(draft: Draft) -> Section:
    """Return the search of a draft, as far as it can be read; it is computed once, because many rules need it."""
    if search_section not in draft.computed:
        leaves = {leaf.name: leaf for leaf in all_leaves(draft)}
        listed: dict[str, list[DocumentPath]] = {}
        for place, _ in draft.items("assignments"):
            for name in draft.names(*place):
                listed.setdefault(name, []).append((*place, name))
        is_read = draft.table is not None or draft.get("assignments", kind=str) is None
        is_whole = bool(leaves or listed or draft.table) and is_read
        for broken in draft.broken:
            is_whole &= broken[-1:] != ("derived",) and {"parameters", "assignments"}.isdisjoint(broken[-2:])
        method, derived = draft.get("method", kind=str), draft.names("derived")
        resource = draft.get("resource", "parameter", kind=str)
        draft.computed[search_section] = Section(
            method, leaves, derived, listed, draft.table, is_whole, resource
        )
    section: Section = draft.computed[search_section]
    return section


def all_leaves(draft: Draft) -> tuple[Leaf, ...]:
    """Return every parameter as written: a name that is written twice is there twice."""
    if all_leaves not in draft.computed:
        draft.computed[all_leaves] = tuple(_leaves(draft, ("parameters",)))
    leaves: tuple[Leaf, ...] = draft.computed[all_leaves]
    return leaves


def sound_keys(draft: Draft, leaf: Leaf) -> dict[str, Any]:
    """Return the keys of a parameter whose values are not broken."""
    mapping = draft.get(*leaf.path, kind=dict) or {}
    return {key: value for key, value in mapping.items() if (*leaf.path, key) not in draft.broken}


def _leaves(
    draft: Draft, path: DocumentPath, prefix: str = "", conditions: tuple[DocumentPath, ...] = ()
) -> Iterator[Leaf]:
    for name in draft.names(*path):
        place = (*path, name)
        if place in draft.document.unread:
            continue
        keys = draft.names(*place)
        needed = (*conditions, (*place, "when")) if "when" in keys else conditions
        if "parameters" in keys:
            yield from _leaves(draft, (*place, "parameters"), f"{prefix}{name}.", needed)
        else:
            yield Leaf(prefix + name, place, needed)


def build_space(draft: Draft) -> SearchSpace:
    """Build the space that a sweep searches."""
    derived = {
        name: DerivedValue(name, parse_expression(text), text)
        for name, text in (draft.get("derived", kind=dict) or {}).items()
    }
    needs = {name: [each.name for each in names_in(value.expression)] for name, value in derived.items()}
    return SearchSpace(
        parameters=tuple(_parameter(draft, leaf) for leaf in search_section(draft).leaves.values()),
        zips=tuple(tuple(group) for group in draft.get("zip", kind=list) or ()),
        derived=tuple(derived[name] for name in dependency_order(needs)),
        constraints=tuple(Constraint(parse_expression(text), text) for _, text in draft.items("constraints")),
    )


def _parameter(draft: Draft, leaf: Leaf) -> Parameter:
    conditions = (
        Condition(name, tuple(map(frozen_value, wanted if isinstance(wanted, list) else [wanted])))
        for path in leaf.conditions
        for name, wanted in (draft.get(*path, kind=dict) or {}).items()
    )
    return Parameter(leaf.name, build_domain(draft.get(*leaf.path, kind=dict) or {}), tuple(conditions))


def dependency_order(dependencies: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """List names so that each comes after those it depends on, otherwise in the given order.

    Ignores dependencies that are not among the names; in a cycle, the first name of the cycle comes last.
    """
    entered: set[str] = set()
    for start in dependencies:
        stack = [(name, iter(dependencies[name])) for name in (start,) if name not in entered]
        entered.add(start)
        while stack:
            name, others = stack[-1]
            other = next((each for each in others if each in dependencies and each not in entered), None)
            if other is None:
                yield name
                stack.pop()
            else:
                entered.add(other)
                stack.append((other, iter(dependencies[other])))
