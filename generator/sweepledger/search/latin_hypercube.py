"""The sampler latin-hypercube: each of `count` equal parts of a dimension has one point."""

from collections.abc import Sequence

from sweepledger.search.random_points import LARGEST_BELOW_ONE, Points
from sweepledger.search.rng import shuffled_indices, stream


def points(seed: int, names: Sequence[str], count: int) -> Points:
    """Yield `count` points in one chunk; a name's coordinates depend on the count but not on other names."""
    yield [_coordinates(seed, name, count) for name in names]


def _coordinates(seed: int, name: str, count: int) -> list[float]:
    numbers = range(count)
    strata = shuffled_indices(stream(seed, name, purpose="strata").words(numbers))
    offsets = stream(seed, name, purpose="places").uniforms(numbers)
    return [
        min((stratum + offset) / count, LARGEST_BELOW_ONE)
        for stratum, offset in zip(strata, offsets, strict=True)
    ]
