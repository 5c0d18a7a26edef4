"""Whether a sweep asks for an assignment, without a list of all that it asks for where that can be helped."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from generator.problems import Problem
from generator.search.adaptive.coding import CodedSpace, coded
from generator.search.expansion import Expansion, explore, is_plain
from generator.search.settling import Failed, Rejected, Settle, settling
from generator.structs.adaptive import Resource, Search
from generator.structs.dimensions import Steps, walked
from generator.structs.space import SearchSpace
from generator.structs.sweep import Grid, Sweep
from generator.structs.values import Value, canonical_json, identity

KEY_BYTES = 16
"""Of an assignment's digest: a hundred thousand of them are a few MiB, and none is taken for another."""

Asks = Callable[[Mapping[str, Any], int], bool]
"""Of an assignment and a replicate."""


def membership(sweep: Sweep) -> Asks | tuple[Problem, ...]:
    """Give the question whether a sweep asks for a trial, or every reason why it asks for nothing at all.

    A full grid is looked at a parameter at a time; of other sweeps all assignments are found once.
    """
    member: Callable[[Mapping[str, Any]], bool]
    match sweep.blocks:
        case (Grid(space, cap=None, seed=None),) if is_plain(space):
            member = _Product.of(space).holds
        case (Search() as search,):
            member = _Anywhere.of(search).holds
        case _:
            found = explore(sweep)
            if not isinstance(found, Expansion):
                return found
            keys = frozenset(map(_key, found.assignments))

            def member(assignment: Mapping[str, Any]) -> bool:
                return _key(assignment) in keys

    return lambda assignment, replicate: replicate < sweep.replicates and member(assignment)


def _key(assignment: Mapping[str, Any]) -> bytes:
    return blake2b(canonical_json(assignment).encode(), digest_size=KEY_BYTES).digest()


@dataclass(frozen=True, slots=True)
class _Product:
    """Every combination of some values of each parameter."""

    values: Mapping[str, Steps | frozenset[Hashable]]

    @classmethod
    def of(cls, space: SearchSpace) -> "_Product":
        found = {parameter.name: walked(parameter.domain) for parameter in space.parameters}
        return cls(
            {
                name: values if isinstance(values, Steps) else frozenset(map(identity, values))
                for name, values in found.items()
            }
        )

    def holds(self, assignment: Mapping[str, Value]) -> bool:
        """Tell whether it has exactly these parameters, each with one of its values."""
        return assignment.keys() == self.values.keys() and all(
            (value if isinstance(values, Steps) else identity(value)) in values
            for (name, value) in assignment.items()
            for values in (self.values[name],)
        )


@dataclass(frozen=True, slots=True)
class _Anywhere:
    """Whatever a search may propose: any assignment of its space may be in a round."""

    space: CodedSpace
    settle: Settle
    resource: Resource | None

    @classmethod
    def of(cls, search: Search) -> "_Anywhere":
        return cls(coded(search.space), settling(search.space), search.resource)

    def holds(self, assignment: Mapping[str, Value]) -> bool:
        """Tell whether it lies in the space, satisfies every constraint, and keeps to the resource."""
        values = dict(assignment)
        if self.resource is not None:
            given = values.pop(self.resource.parameter, None)
            if not isinstance(given, int) or not self.resource.minimum <= given <= self.resource.maximum:
                return False
        if self.space.encode(values) is None:
            return False
        settled = self.settle(values)
        return not isinstance(settled, Rejected | Failed) and _key(settled) == _key(values)
