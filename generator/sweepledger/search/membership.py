"""Membership: whether a sweep contains a configuration, without listing all of them where possible."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sweepledger.problems import Problem
from sweepledger.search.configurations import (
    ConfigurationBuilder,
    ExpressionFailure,
    Rejected,
    configuration_builder,
)
from sweepledger.search.encoding import EncodedSpace, encode_space
from sweepledger.search.expansion import Expansion, explore, is_full_product
from sweepledger.structs.combinations import grid_values
from sweepledger.structs.domain import StepRange
from sweepledger.structs.search_block import AdaptiveSearch, GridSearch, Resource
from sweepledger.structs.space import SearchSpace
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, canonical_json, identity

KEY_BYTES = 16
"""Size of a configuration's digest: a hundred thousand take a few MiB, and collisions are practically impossible."""

MembershipTest = Callable[[Mapping[str, Any], int], bool]
"""A function of a configuration and a replicate number."""


def membership(sweep: Sweep) -> MembershipTest | tuple[Problem, ...]:
    """Return the function that tells whether a sweep contains a trial, or the errors of the sweep.

    Full grids and adaptive searches are tested by parameter; other sweeps are expanded once.
    """
    member: Callable[[Mapping[str, Any]], bool]
    match sweep.design:
        case GridSearch(space, cap=None) if is_full_product(space):
            member = _Product.of(space).contains
        case AdaptiveSearch() as search:
            member = _WholeSpace.of(search).contains
        case _:
            expansion = explore(sweep)
            if not isinstance(expansion, Expansion):
                return expansion
            keys = frozenset(map(_key, expansion.configurations))

            def member(configuration: Mapping[str, Any]) -> bool:
                return _key(configuration) in keys

    return lambda configuration, replicate: replicate < sweep.replicates and member(configuration)


def _key(configuration: Mapping[str, Any]) -> bytes:
    return blake2b(canonical_json(configuration).encode(), digest_size=KEY_BYTES).digest()


@dataclass(frozen=True, slots=True)
class _Product:
    values: Mapping[str, StepRange | frozenset[Hashable]]

    @classmethod
    def of(cls, space: SearchSpace) -> "_Product":
        columns = {parameter.name: grid_values(parameter.domain) for parameter in space.parameters}
        return cls(
            {
                name: values if isinstance(values, StepRange) else frozenset(map(identity, values))
                for name, values in columns.items()
            }
        )

    def contains(self, configuration: Mapping[str, Value]) -> bool:
        """Return whether it has exactly the grid's parameters, each with one of its values."""
        return configuration.keys() == self.values.keys() and all(
            (value if isinstance(values, StepRange) else identity(value)) in values
            for (name, value) in configuration.items()
            for values in (self.values[name],)
        )


@dataclass(frozen=True, slots=True)
class _WholeSpace:
    """The configurations that a search may propose: all of its space."""

    space: EncodedSpace
    build: ConfigurationBuilder
    resource: Resource | None

    @classmethod
    def of(cls, search: AdaptiveSearch) -> "_WholeSpace":
        return cls(encode_space(search.space), configuration_builder(search.space), search.resource)

    def contains(self, configuration: Mapping[str, Value]) -> bool:
        """Return whether it is in the space, satisfies all constraints, and has a legal amount of the resource."""
        values = dict(configuration)
        if self.resource is not None:
            amount = values.pop(self.resource.parameter, None)
            if not isinstance(amount, int) or not self.resource.minimum <= amount <= self.resource.maximum:
                return False
        if self.space.encode(values) is None:
            return False
        built = self.build(values)
        return not isinstance(built, Rejected | ExpressionFailure) and _key(built) == _key(values)
