"""The combinations of a search space: the values and dimensions of a grid, and their number.

The number is computed by arithmetic: large spaces take no longer than small ones.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from operator import attrgetter

from sweepledger.structs.domain import Domain, GridValues, StepRange, is_ordered
from sweepledger.structs.space import (
    KnownParents,
    Parameter,
    SearchSpace,
    may_exist,
    parent_conditions,
    parents_first,
)
from sweepledger.structs.values import Value, identity


def grid_size(domain: Domain) -> int | None:
    """Return the number of a domain's values in a grid; None if they cannot be enumerated."""
    values = domain.grid_values
    return values.count if isinstance(values, StepRange) else None if values is None else len(values)


@dataclass(frozen=True, slots=True)
class Dimension:
    """Zipped parameters, or a single parameter."""

    members: tuple[Parameter, ...]
    size: int

    @classmethod
    def of(cls, members: tuple[Parameter, ...]) -> "Dimension":
        """Make a dimension of parameters whose values a grid can list."""
        return cls(members, _common_size(members))

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


def _common_size(members: tuple[Parameter, ...]) -> int:
    sizes = {grid_size(member.domain) for member in members}
    assert len(sizes) == 1, f"zipped parameters have one length, but got {sizes!r}"
    (only,) = sizes
    assert only is not None, f"a grid cannot enumerate {members!r}"
    return only


MAX_TRIALS = 100_000
"""The largest number of completions of an Indexed Job that counts retries for each index."""

MAX_COMBINATIONS = 1_000_000
"""Limit of a grid before constraints: checking each takes some seconds in all."""

MAX_CASES = 10_000
"""Limit of the cases of conditions that are counted one by one, times the dimensions involved."""

OTHER = object()
"""Stands for every value that no condition names."""
ABSENT = object()


@lru_cache(maxsize=256)  # every limit calls it for every sweep
def count_combinations(space: SearchSpace) -> int:
    """Return the number of a grid's configurations before constraints.

    It is exact, or an upper bound if conditions have very many cases or refer to their own zip group.
    """
    dimensions = list_dimensions(space)
    conditional = any(parameter.when for parameter in space.parameters)
    if not conditional:
        return prod(dimension.size for dimension in dimensions)
    total, left = 1, MAX_CASES
    for part in _independent(dimensions):
        branches = _branches(part)
        cases = len(part) * prod(len(cases) for _, cases in branches)
        total *= _sum(branches, {}) if cases <= left else prod(dimension.size for dimension in part)
        left -= cases if cases <= left else 0
    return total


def count_distinct(space: SearchSpace) -> int | None:
    """Count the configurations that draws can give, before constraints; None: too many to count."""
    domains = [parameter.domain for parameter in space.parameters]
    if not all(domain.is_discrete for domain in domains):
        return None
    return count_combinations(space)


def _independent(dimensions: tuple[Dimension, ...]) -> list[list[Dimension]]:
    """Return groups of dimensions that no condition connects."""
    parts: list[tuple[set[str], list[Dimension]]] = []
    for dimension in dimensions:
        names, members = (
            {
                *dimension.names,
                *{condition.parameter for member in dimension.members for condition in member.when},
            },
            [dimension],
        )
        for other, others in [part for part in parts if part[0] & names]:
            names, members = names | other, [*others, *members]
        parts = [part for part in parts if not part[0] & names]
        parts.append((names, members))
    return [members for _, members in parts]


@dataclass(frozen=True, slots=True)
class _Case:
    """Positions of a dimension that are equal for all conditions."""

    known: KnownParents
    positions: int


def _branches(part: list[Dimension]) -> list[tuple[Dimension, tuple[_Case, ...]]]:
    named: dict[str, dict[Hashable, None]] = {}
    members = [member for dimension in part for member in dimension.members]
    for condition in (condition for member in members for condition in member.when):
        named.setdefault(condition.parameter, {}).update(dict.fromkeys(map(identity, condition.values)))
    return [
        (dimension, tuple(_cases(dimension, named)))
        for dimension in parents_first(part, attrgetter("members"))
    ]


def _sum(branches: list[tuple[Dimension, tuple[_Case, ...]]], known: KnownParents) -> int:
    if not branches:
        return 1
    (dimension, cases), *rest = branches
    absent = {
        member.name: ABSENT for member in dimension.members if not may_exist(parent_conditions(member), known)
    }
    if len(absent) == len(dimension.members):
        return _sum(rest, {**known, **absent})
    return sum(case.positions * _sum(rest, {**known, **case.known, **absent}) for case in cases)


def _cases(dimension: Dimension, named: Mapping[str, Mapping[Hashable, None]]) -> Iterator[_Case]:
    """Group a dimension's positions by the values that conditions name."""
    (first, *others) = dimension.members
    values = grid_values(first.domain)
    if not others and isinstance(values, StepRange):
        seen = [key for key in named.get(first.name, ()) if key in values]
        yield from (_Case({first.name: key}, 1) for key in seen)
        if dimension.size > len(seen):
            yield _Case({first.name: OTHER}, dimension.size - len(seen))
        return
    members = [member for member in dimension.members if member.name in named]
    if not members:
        yield _Case({}, dimension.size)
        return
    counts: dict[tuple[Hashable, ...], int] = {}
    columns = [(named[member.name], grid_values(member.domain)) for member in members]
    for at in range(dimension.size):
        keys = ((keys, identity(column[at])) for keys, column in columns)
        seen_here = tuple(key if key in wanted else OTHER for wanted, key in keys)
        counts[seen_here] = counts.get(seen_here, 0) + 1
    names = [member.name for member in members]
    yield from (_Case(dict(zip(names, keys, strict=True)), count) for keys, count in counts.items())


def count_columns(space: SearchSpace) -> int:
    """Return the numbers that describe a configuration: one for each number, and for each value without an order."""
    return sum(_columns(group) for group in space.groups)


def _columns(group: tuple[Parameter, ...]) -> int:
    if len(group) > 1:
        dimension = Dimension.of(group)
        return 1 if all(map(is_ordered, zip(*dimension.values(), strict=True))) else dimension.size
    domain, is_optional = group[0].domain, bool(group[0].when)
    return int(is_optional) if domain.is_constant else domain.axis.columns
