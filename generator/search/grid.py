"""Every combination of every domain, in the order of the full product.

The order: the last dimension varies fastest, a zip counts as one dimension where its first member is written,
and an assignment stands where the full product, with every parameter of every branch, would first give it.
"""

import itertools
from collections.abc import Hashable, Iterable, Iterator
from operator import itemgetter

from generator.search.settling import Candidate
from generator.structs.conditions import allowed, may_exist
from generator.structs.counting import ABSENT, parents_first
from generator.structs.dimensions import Dimension, dimensions
from generator.structs.space import SearchSpace
from generator.structs.values import Value, identity


def grid(space: SearchSpace) -> Iterator[Candidate]:
    """Yield candidates that differ where they exist; one that differs where it does not may come again."""
    found = dimensions(space)
    names = [name for dimension in found for name in dimension.names]
    if any(parameter.when for parameter in space.parameters):
        chosen: Iterable[tuple[tuple[Value, ...], ...]] = _conditional(found)
    else:
        chosen = itertools.product(*(dimension.values() for dimension in found))
    if space.zips:
        for groups in chosen:
            yield dict(zip(names, itertools.chain.from_iterable(groups), strict=True))
    else:
        for groups in chosen:
            yield dict(zip(names, [value for (value,) in groups], strict=True))


def _conditional(found: tuple[Dimension, ...]) -> Iterator[tuple[tuple[Value, ...], ...]]:
    """Walk parents before children, and branches only where they exist."""
    ordered = parents_first(list(found))
    values = [dimension.values() for dimension in found]
    places = [ordered.index(dimension) for dimension in found]
    walked = _Walk(ordered).below(0, ())
    # Children written before their parents vary slower than these, which no walk along the parents can give.
    in_order = walked if ordered == list(found) else sorted(map(_arranged(places), walked))
    for positions in in_order:
        yield tuple(column[at] for column, at in zip(values, positions, strict=True))


def _arranged(places: list[int]) -> "itemgetter[tuple[int, ...]]":
    return itemgetter(*places)


class _Walk:
    """A walk down the dimensions: positions so far, and what the conditions below can see of them."""

    def __init__(self, ordered: list[Dimension]) -> None:
        self.ordered = ordered
        self.conditions = [tuple(allowed(member) for member in dimension.members) for dimension in ordered]
        parents = {parent for members in self.conditions for one in members for parent, _ in one}
        self.seen = [
            [
                {
                    name: identity(value)
                    for name, value in zip(dimension.names, values, strict=True)
                    if name in parents
                }
                for values in dimension.values()
            ]
            for dimension in ordered
        ]
        self.known: dict[str, Hashable] = {}

    def below(self, depth: int, positions: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Yield all positions that begin with these; 0 stands for a dimension that does not exist."""
        if depth == len(self.ordered):
            yield positions
            return
        dimension = self.ordered[depth]
        existing = [may_exist(conditions, self.known) for conditions in self.conditions[depth]]
        absent = {name: ABSENT for name, exists in zip(dimension.names, existing, strict=True) if not exists}
        for position in range(dimension.size if any(existing) else 1):
            self.known |= self.seen[depth][position] | absent
            yield from self.below(depth + 1, (*positions, position))
        for name in dimension.names:
            self.known.pop(name, None)
