"""Candidates of a design, before conditions and constraints apply: grid, shuffled grid, list and random draws.

Grid order: the last dimension varies fastest, a zip group is one dimension at the place of its first
member, and a candidate has the place where the full product of all parameters first contains it.
"""

import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from math import prod
from operator import attrgetter, itemgetter

from sweepledger.search import configurations
from sweepledger.search.rng import permutation
from sweepledger.search.unit_cube import axes, axis_columns
from sweepledger.structs.methods import PLAIN
from sweepledger.structs.search_block import RandomSearch
from sweepledger.structs.space import (
    ABSENT,
    MAX_COMBINATIONS,
    Dimension,
    SearchSpace,
    count_distinct,
    grid_values,
    group_name,
    list_dimensions,
    may_exist,
    parent_conditions,
    parents_first,
)
from sweepledger.structs.values import Value, identity


def grid_candidates(space: SearchSpace) -> Iterator[configurations.Candidate]:
    """Yield the grid without branches that cannot exist; some candidates may be equal after conditions apply."""
    dimensions = list_dimensions(space)
    names = [name for dimension in dimensions for name in dimension.names]
    if any(parameter.when for parameter in space.parameters):
        products: Iterable[tuple[tuple[Value, ...], ...]] = _conditional_product(dimensions)
    else:
        products = itertools.product(*(dimension.values() for dimension in dimensions))
    if space.zips:
        for groups in products:
            yield dict(zip(names, itertools.chain.from_iterable(groups), strict=True))
    else:
        for groups in products:
            yield dict(zip(names, [value for (value,) in groups], strict=True))


def _conditional_product(dimensions: tuple[Dimension, ...]) -> Iterator[tuple[tuple[Value, ...], ...]]:
    """Yield the product without the branches that cannot exist."""
    ordered = parents_first(dimensions, attrgetter("members"))
    values = [dimension.values() for dimension in dimensions]
    conditions = [tuple(map(parent_conditions, dimension.members)) for dimension in ordered]
    parents = {parent for members in conditions for member in members for parent, _ in member}
    # The values that later conditions mention.
    parent_values = [
        [
            {
                name: identity(value)
                for name, value in zip(dimension.names, row, strict=True)
                if name in parents
            }
            for row in dimension.values()
        ]
        for dimension in ordered
    ]
    known: dict[str, Hashable] = {}

    def below(depth: int, chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Yield all index tuples that begin with the chosen ones; an absent dimension has index 0."""
        if depth == len(ordered):
            yield chosen
            return
        dimension = ordered[depth]
        existing = [may_exist(members, known) for members in conditions[depth]]
        absent = {name: ABSENT for name, exists in zip(dimension.names, existing, strict=True) if not exists}
        for index in range(dimension.size if any(existing) else 1):
            known.update(parent_values[depth][index] | absent)
            yield from below(depth + 1, (*chosen, index))
        for name in dimension.names:
            known.pop(name, None)

    indices = below(0, ())
    if ordered != list(dimensions):
        # Children written before their parents vary more slowly, which a walk from parents to children
        # cannot produce.
        depths = [ordered.index(dimension) for dimension in dimensions]
        indices = iter(sorted(map(itemgetter(*depths), indices)))
    for row in indices:
        yield tuple(column[at] for column, at in zip(values, row, strict=True))


SHUFFLE = "grid_order"
"""Purpose of the stream; another word would change the rounds of recorded searches."""


def shuffled_grid_candidates(space: SearchSpace, seed: int) -> Iterator[configurations.Candidate]:
    """Yield the full product in random order; some candidates may be equal after conditions apply."""
    dimensions = list_dimensions(space)
    total = prod(dimension.size for dimension in dimensions)
    columns = [
        (dimension.size, [(member.name, grid_values(member.domain)) for member in dimension.members])
        for dimension in reversed(dimensions)
    ]
    shuffled = permutation(seed, SHUFFLE, total)
    for number in range(total):
        rest = shuffled(number)
        candidate: dict[str, Value] = {}
        for size, members in columns:
            rest, index = divmod(rest, size)
            for name, values in members:
                candidate[name] = values[index]
        yield candidate


def draw_candidates(design: RandomSearch) -> Iterator[dict[str, Value]]:
    """Yield candidates with a value for every parameter, in the order written.

    The candidates never end, unless the sampler has a fixed number of points; a space of constants has one candidate.
    """
    design_axes = axes(design.space)
    names = [parameter.name for parameter in design.space.parameters]
    constants = design.space.constants
    if not design_axes:
        yield constants
        return
    column_functions = [axis_columns(axis) for axis in design_axes]
    for chunk in import_module(design.method.module).points(
        design.seed, [group_name(axis) for axis in design_axes], design.cap
    ):
        columns: dict[str, Sequence[Value]] = {
            name: [value] * len(chunk[0]) for name, value in constants.items()
        }
        for columns_of, coordinates in zip(column_functions, chunk, strict=True):
            columns |= columns_of(coordinates)
        for values in zip(*(columns[name] for name in names), strict=True):
            yield dict(zip(names, values, strict=True))


MAX_DRAWS = 20_000
"""Candidates examined for a round; if they contain nothing new, the space counts as exhausted."""


def feasible_configurations(space: SearchSpace, seed: int) -> Iterator[configurations.Configuration]:
    """Draw configurations that satisfy all constraints; in a small space, each once."""
    build = configurations.configuration_builder(space)
    distinct = count_distinct(space)
    if distinct is not None and distinct <= MAX_DRAWS:
        candidates = islice(shuffled_grid_candidates(space, seed), MAX_COMBINATIONS)
    else:
        candidates = islice(draw_candidates(RandomSearch(PLAIN, space, seed, cap=1)), MAX_DRAWS)
    for candidate in candidates:
        configuration = build(candidate)
        if not isinstance(configuration, configurations.Unbuilt):
            yield configuration
