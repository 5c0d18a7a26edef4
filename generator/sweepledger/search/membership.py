"""Membership: whether a sweep contains a configuration, without listing all of them where possible."""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from sweepledger.problems import Problem
from sweepledger.search.configurations import Unbuilt, configuration_builder
from sweepledger.search.encoding import encode_space
from sweepledger.search.expansion import Expansion, explore, is_full_product
from sweepledger.structs.domain import StepRange
from sweepledger.structs.search_block import AdaptiveSearch, GridSearch
from sweepledger.structs.space import SearchSpace, grid_values
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, canonical_json, identity

KEY_BYTES = 16
"""Size of a configuration's digest: a hundred thousand take a few MiB, and collisions are practically impossible."""


def membership(sweep: Sweep) -> Callable[[Mapping[str, Any], int], bool] | tuple[Problem, ...]:
    """Return the function that tells by configuration and replicate if a sweep has a trial, or the errors of the sweep.

    Full grids and adaptive searches are tested by parameter; other sweeps are expanded once.
    """
    member: Callable[[Mapping[str, Any]], bool]
    match sweep.design:
        case GridSearch(space, cap=None) if is_full_product(space):
            member = _product_membership(space)
        case AdaptiveSearch() as search:
            member = _space_membership(search)
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


def _product_membership(space: SearchSpace) -> Callable[[Mapping[str, Value]], bool]:
    """Return whether a configuration has exactly a grid's parameters, each with one of its values."""
    columns = {parameter.name: grid_values(parameter.domain) for parameter in space.parameters}
    listed = {
        name: values if isinstance(values, StepRange) else frozenset(map(identity, values))
        for name, values in columns.items()
    }

    def contains(configuration: Mapping[str, Value]) -> bool:
        return configuration.keys() == listed.keys() and all(
            (value if isinstance(values, StepRange) else identity(value)) in values
            for (name, value) in configuration.items()
            for values in (listed[name],)
        )

    return contains


def _space_membership(search: AdaptiveSearch) -> Callable[[Mapping[str, Value]], bool]:
    """Return whether a search may propose a configuration: any in its space with a legal amount of its resource."""
    space, build, resource = encode_space(search.space), configuration_builder(search.space), search.resource

    def contains(configuration: Mapping[str, Value]) -> bool:
        values = dict(configuration)
        if resource is not None:
            amount = values.pop(resource.parameter, None)
            if not isinstance(amount, int) or not resource.minimum <= amount <= resource.maximum:
                return False
        if space.encode(values) is None:
            return False
        built = build(values)
        return not isinstance(built, Unbuilt) and _key(built) == _key(values)

    return contains
