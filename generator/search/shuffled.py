"""A grid in an order of the seed's making; any place of it can be reached without those before."""

from collections.abc import Iterator
from math import prod

from generator.search.draws import permutation
from generator.search.settling import Candidate
from generator.structs.dimensions import dimensions, walked
from generator.structs.space import SearchSpace
from generator.structs.values import Value

PURPOSE = "grid_order"


def shuffled(space: SearchSpace, seed: int) -> Iterator[Candidate]:
    """Yield the full product in shuffled order; what differs only in what does not exist comes again."""
    found = dimensions(space)
    total = prod(dimension.size for dimension in found)
    columns = [
        (dimension.size, [(member.name, walked(member.domain)) for member in dimension.members])
        for dimension in reversed(found)
    ]
    place_of = permutation(seed, PURPOSE, total)
    for number in range(total):
        place = place_of(number)
        chosen: dict[str, Value] = {}
        for size, members in columns:
            place, position = divmod(place, size)
            for name, values in members:
                chosen[name] = values[position]
        yield chosen
