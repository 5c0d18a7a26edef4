"""The search space: named domains in the order of the spec, with conditions, derived values and constraints.

All methods interpret it in the same way: choose a value for each parameter (the parameters of a zip group share
one position), drop the parameters whose conditions are false, compute the derived values, and keep the
configuration if every constraint is true. Equal configurations count once. Their number is computed by arithmetic.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import TypeVar

from msgspec import Struct

from sweepledger.structs.domain import Domain, GridValues, StepRange
from sweepledger.structs.expression import Expression
from sweepledger.structs.values import Value, identity


class Condition(Struct, frozen=True):
    """The parameter exists only if another one exists and has one of these values."""

    parameter: str
    values: tuple[Value, ...]


class Parameter(Struct, frozen=True):
    """One named hyperparameter."""

    name: str
    domain: Domain
    when: tuple[Condition, ...] = ()
    """All of them must be true."""


class DerivedValue(Struct, frozen=True):
    """A value computed from others; absent if one of those is."""

    name: str
    expression: Expression
    text: str


class Constraint(Struct, frozen=True):
    """An expression that every configuration must satisfy; a configuration without one of its names satisfies it."""

    expression: Expression
    text: str


class SearchSpace(Struct, frozen=True):
    """All parameters; their order decides the order of trials, never their identity."""

    parameters: tuple[Parameter, ...]
    zips: tuple[tuple[str, ...], ...] = ()
    """Zip groups; their parameters have choices of one length, without probabilities."""
    derived: tuple[DerivedValue, ...] = ()
    """In an order in which each depends only on parameters and earlier derived values."""
    constraints: tuple[Constraint, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of parameters and derived values, in the order of the spec."""
        parameters = (parameter.name for parameter in self.parameters)
        return (*parameters, *(value.name for value in self.derived))

    @property
    def constants(self) -> dict[str, Value]:
        """The values of the parameters that have only one, in the order written."""
        return {
            parameter.name: parameter.domain.listed[0]
            for parameter in self.parameters
            if parameter.domain.is_constant
        }

    @property
    def groups(self) -> tuple[tuple[Parameter, ...], ...]:
        """Zip groups at the place of their first parameter, and all other parameters alone."""
        zipped = {name: group for group in self.zips for name in group}
        groups: dict[tuple[str, ...], list[Parameter]] = {}
        for parameter in self.parameters:
            groups.setdefault(zipped.get(parameter.name, (parameter.name,)), []).append(parameter)
        return tuple(map(tuple, groups.values()))

    def __getitem__(self, name: str) -> Parameter:
        """Return a parameter by name. Raises KeyError."""
        return {parameter.name: parameter for parameter in self.parameters}[name]


ParentConditions = tuple[tuple[str, frozenset[Hashable]], ...]

Group = TypeVar("Group")

KnownParents = Mapping[str, Hashable]
"""The known parents of conditions: the identity of a value, or a marker object."""


def parent_conditions(parameter: Parameter) -> ParentConditions:
    """Return a parameter's conditions, all of which must be true."""
    return tuple(
        (condition.parameter, frozenset(map(identity, condition.values))) for condition in parameter.when
    )


def may_exist(conditions: ParentConditions, known: KnownParents) -> bool:
    """Return whether conditions can be true, given the known parents; a zip group can hide others."""
    return all(parent not in known or known[parent] in identities for parent, identities in conditions)


def group_name(members: Iterable[Parameter]) -> str:
    """Return the name of a group of zipped parameters, which does not depend on their order."""
    return " ".join(sorted(member.name for member in members))


def parents_first(groups: Iterable[Group], members: Callable[[Group], Sequence[Parameter]]) -> list[Group]:
    """Sort groups of parameters so that each follows the parents of its members, unless zips form a cycle."""
    left, ordered = list(groups), list[Group]()
    while left:
        waiting = {member.name for group in left for member in members(group)}
        ready = [group for group in left if not parents(members(group)) & waiting] or left[:1]
        ordered += ready
        left = [group for group in left if group not in ready]
    return ordered


def parents(members: Iterable[Parameter]) -> set[str]:
    """Return the names of the parameters that conditions name, without the members' own."""
    members = tuple(members)
    names = {condition.parameter for member in members for condition in member.when}
    return names - {member.name for member in members}


class Dimension(Struct, frozen=True):
    """Zipped parameters, or a single parameter."""

    members: tuple[Parameter, ...]
    size: int

    @classmethod
    def of(cls, members: tuple[Parameter, ...]) -> "Dimension":
        """Make a dimension of parameters whose values a grid can list."""
        lists = [grid_values(member.domain) for member in members]
        (size,) = {each.count if isinstance(each, StepRange) else len(each) for each in lists}
        return cls(members, size)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members in the order of the spec."""
        return tuple(member.name for member in self.members)

    def values(self) -> Sequence[tuple[Value, ...]]:
        """Return the members' values at every position."""
        columns = [grid_values(member.domain) for member in self.members]
        return [tuple(column[at] for column in columns) for at in range(self.size)]


def grid_values(domain: Domain) -> GridValues:
    """Return the values of a domain that the rules accept in a grid."""
    values = domain.grid_values
    assert values is not None, f"a grid cannot enumerate {domain!r}"
    return values


def list_dimensions(space: SearchSpace) -> tuple[Dimension, ...]:
    """Return the dimensions of a grid, zip groups at the place of their first member."""
    return tuple(map(Dimension.of, space.groups))


MAX_TRIALS = 100_000
"""The largest number of completions of an Indexed Job that counts retries for each index."""

MAX_COMBINATIONS = 1_000_000
"""Limit of a grid before constraints: checking each takes some seconds in all."""

MAX_CASES = 10_000
"""Limit of the cases of conditions that are counted one by one."""

OTHER = object()
"""Stands for every value that no condition names."""
ABSENT = object()
Known = frozenset[tuple[str, Hashable]]
"""What is known of parameters that conditions name."""


@lru_cache(maxsize=256)  # every limit calls it for every sweep
def count_combinations(space: SearchSpace) -> int:
    """Return the number of a grid's configurations before constraints.

    It is exact, or an upper bound if conditions have very many cases or refer to their own zip group.
    """
    named: dict[str, set[Hashable]] = {}
    for condition in (condition for parameter in space.parameters for condition in parameter.when):
        named.setdefault(condition.parameter, set()).update(map(identity, condition.values))
    counts: dict[Known, int] = {frozenset(): 1}
    left = list(list_dimensions(space))
    while left:
        waiting = {name for dimension in left for name in dimension.names}
        ready = [dimension for dimension in left if not parents(dimension.members) & waiting] or left[:1]
        # What depends on others comes first: afterwards, less of them must be known.
        left.remove(dimension := max(ready, key=lambda each: len(parents(each.members))))
        needed = {name for each in left for name in parents(each.members)}
        cases, further = _cases(dimension, named), Counter[Known]()
        conditions = {member.name: parent_conditions(member) for member in dimension.members}
        for known, count in counts.items():
            absent = {name: ABSENT for name, when in conditions.items() if not may_exist(when, dict(known))}
            for case, positions in cases if len(absent) < len(conditions) else [({}, 1)]:
                values = {**dict(known), **case, **absent}
                kept = frozenset((name, values[name]) for name in needed & values.keys())
                further[kept] += count * positions
        if len(further) > MAX_CASES:
            return prod(dimension.size for dimension in list_dimensions(space))
        counts = further
    return sum(counts.values())


def _cases(dimension: Dimension, named: Mapping[str, set[Hashable]]) -> list[tuple[KnownParents, int]]:
    """Return the values of a dimension that conditions name, each with the number of its positions."""
    (first, *others) = dimension.members
    values = grid_values(first.domain)
    if not others and isinstance(values, StepRange):
        seen = [key for key in named.get(first.name, ()) if key in values]
        return [*(({first.name: key}, 1) for key in seen), ({first.name: OTHER}, dimension.size - len(seen))]
    members = [(each.name, grid_values(each.domain)) for each in dimension.members if each.name in named]
    counts: Counter[tuple[Hashable, ...]] = Counter() if members else Counter({(): dimension.size})
    for at in range(dimension.size) if members else ():
        keys = ((name, identity(column[at])) for name, column in members)
        counts[tuple(key if key in named[name] else OTHER for name, key in keys)] += 1
    return [
        (dict(zip((name for name, _ in members), keys, strict=True)), count) for keys, count in counts.items()
    ]


def count_distinct(space: SearchSpace) -> int | None:
    """Count the configurations that draws can give, before constraints; None: too many to count."""
    is_countable = all(parameter.domain.is_discrete for parameter in space.parameters)
    return count_combinations(space) if is_countable else None
