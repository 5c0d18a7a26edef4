"""The search space of a section: domains, conditions, constraints and derived values."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sweepledger.distributions import build_domain
from sweepledger.expressions.parser import parse_expression
from sweepledger.reader import DocumentPath
from sweepledger.spec.draft import Draft
from sweepledger.spec.sections import Leaf, Section
from sweepledger.structs.expression import names_in
from sweepledger.structs.space import Condition, Constraint, DerivedValue, Parameter, SearchSpace
from sweepledger.structs.values import frozen_value


def build_space(draft: Draft, section: Section) -> SearchSpace:
    """Build the space that a sweep searches."""
    return SearchSpace(
        parameters=tuple(_parameter(draft, leaf) for leaf in section.leaves.values()),
        zips=tuple(tuple(group) for group in draft.get("zip", kind=list) or ()),
        derived=_ordered(tuple(_derived(draft, ("derived",)))),
        constraints=tuple(_constraints(draft, ("constraints",))),
    )


def _parameter(draft: Draft, leaf: Leaf) -> Parameter:
    conditions = (
        Condition(
            name, tuple(frozen_value(item) for item in (wanted if isinstance(wanted, list) else [wanted]))
        )
        for path in leaf.conditions
        for name, wanted in _mapping(draft, path).items()
    )
    return Parameter(leaf.name, build_domain(_mapping(draft, leaf.path)), tuple(conditions))


def _constraints(draft: Draft, path: DocumentPath) -> Iterator[Constraint]:
    for _, text in draft.items(*path):
        yield Constraint(parse_expression(text), text)


def _derived(draft: Draft, path: DocumentPath) -> Iterator[DerivedValue]:
    for name, text in _mapping(draft, path).items():
        yield DerivedValue(name, parse_expression(text), text)


def _ordered(derived: tuple[DerivedValue, ...]) -> tuple[DerivedValue, ...]:
    by_name = {value.name: value for value in derived}
    names = {value.name: [name.name for name in names_in(value.expression)] for value in derived}
    return tuple(by_name[name] for name in dependency_order(names))


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


def _mapping(draft: Draft, path: DocumentPath) -> Mapping[str, Any]:
    return draft.get(*path, kind=dict) or {}
