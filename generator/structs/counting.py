"""How many combinations a space has, by arithmetic: a million million of them take no longer than ten."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from generator.structs.conditions import Known, allowed, may_exist
from generator.structs.dimensions import Dimension, Steps, dimensions, walked
from generator.structs.space import SearchSpace
from generator.structs.values import identity

MOST_TRIALS = 100_000
"""The most completions an Indexed Job can have with retries counted for each of them."""

MOST_COMBINATIONS = 1_000_000
"""Of a grid, before constraints: some seconds of looking at each."""

MOST_CASES = 10_000
"""So many ways for conditions to turn out are looked at one by one, times the dimensions that have a part."""

OTHER = object()
"""A value that no condition asks for."""
ABSENT = object()


@lru_cache(maxsize=256)  # every limit asks for it, of every block of a sweep
def combinations(space: SearchSpace) -> int:
    """Count a grid's assignments before constraints, for parameters that all have a `size`.

    Exact, but for an upper bound where conditions turn out in very many ways or look into their own zip.
    """
    found = dimensions(space)
    conditional = any(parameter.when for parameter in space.parameters)
    if not conditional:
        return prod(dimension.size for dimension in found)
    total, left = 1, MOST_CASES
    for part in _independent(found):
        branches = _branches(part)
        cases = len(part) * prod(len(cases) for _, cases in branches)
        total *= _sum(branches, {}) if cases <= left else prod(dimension.size for dimension in part)
        left -= cases if cases <= left else 0
    return total


def _independent(found: tuple[Dimension, ...]) -> list[list[Dimension]]:
    """Part dimensions that no condition connects."""
    parts: list[tuple[set[str], list[Dimension]]] = []
    for dimension in found:
        names, members = {*dimension.names, *_parents(dimension)}, [dimension]
        for other, others in [part for part in parts if part[0] & names]:
            names, members = names | other, [*others, *members]
        parts = [part for part in parts if not part[0] & names]
        parts.append((names, members))
    return [members for _, members in parts]


def _parents(dimension: Dimension) -> set[str]:
    return {condition.parameter for member in dimension.members for condition in member.when}


@dataclass(frozen=True, slots=True)
class _Case:
    """Positions of a dimension that no condition tells apart."""

    known: Known
    positions: int


def _branches(part: list[Dimension]) -> list[tuple[Dimension, tuple[_Case, ...]]]:
    asked: dict[str, dict[Hashable, None]] = {}
    for condition in (one for dimension in part for member in dimension.members for one in member.when):
        asked.setdefault(condition.parameter, {}).update(dict.fromkeys(map(identity, condition.values)))
    return [(dimension, tuple(_cases(dimension, asked))) for dimension in parents_first(part)]


def _sum(branches: list[tuple[Dimension, tuple[_Case, ...]]], known: Known) -> int:
    if not branches:
        return 1
    (dimension, cases), *rest = branches
    absent = {member.name: ABSENT for member in dimension.members if not may_exist(allowed(member), known)}
    if len(absent) == len(dimension.members):
        return _sum(rest, {**known, **absent})
    return sum(case.positions * _sum(rest, {**known, **case.known, **absent}) for case in cases)


def _cases(dimension: Dimension, asked: Mapping[str, Mapping[Hashable, None]]) -> Iterator[_Case]:
    """Group a dimension's positions by what conditions can see of them."""
    (first, *others) = dimension.members
    values = walked(first.domain)
    if not others and isinstance(values, Steps):
        seen = [key for key in asked.get(first.name, ()) if key in values]
        yield from (_Case({first.name: key}, 1) for key in seen)
        if dimension.size > len(seen):
            yield _Case({first.name: OTHER}, dimension.size - len(seen))
        return
    members = [member for member in dimension.members if member.name in asked]
    if not members:
        yield _Case({}, dimension.size)
        return
    counts: dict[tuple[Hashable, ...], int] = {}
    columns = [(asked[member.name], walked(member.domain)) for member in members]
    for at in range(dimension.size):
        keys = ((keys, identity(column[at])) for keys, column in columns)
        seen_here = tuple(key if key in wanted else OTHER for wanted, key in keys)
        counts[seen_here] = counts.get(seen_here, 0) + 1
    names = [member.name for member in members]
    yield from (_Case(dict(zip(names, keys, strict=True)), count) for keys, count in counts.items())


def parents_first(found: list[Dimension]) -> list[Dimension]:
    """Order dimensions so that conditions look back only, wherever zips leave a way to."""
    left, ordered = list(found), list[Dimension]()
    while left:
        waiting = {name for dimension in left for name in dimension.names}
        ready = [one for one in left if not _parents(one) & (waiting - set(one.names))]
        ordered += ready or left[:1]
        left = [one for one in left if one not in (ready or left[:1])]
    return ordered
