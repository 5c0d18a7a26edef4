"""Whether a sweep asks for an assignment, without a list of all that it asks for where that can be helped."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from generator.problems import Problem
from generator.search.expansion import Expansion, explore, is_plain
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
