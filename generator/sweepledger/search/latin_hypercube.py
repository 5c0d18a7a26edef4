"""The sampler latin-hypercube: each of `count` equal parts of a dimension has one point."""

from collections.abc import Sequence

from sweepledger.search.random_points import LARGEST_BELOW_ONE, Points
from sweepledger.search.rng import shuffled_indices, stream


def points(seed: int, names: Sequence[str], count: int) -> Points:
    """Yield `count` points in one chunk; a name's coordinates depend on the count but not on other names."""
    columns: list[list[float]] = []
    for name in names:
        strata = shuffled_indices(stream(seed, name, purpose="strata").words(range(count)))
        offsets = stream(seed, name, purpose="places").uniforms(range(count))
        sums = (stratum + offset for stratum, offset in zip(strata, offsets, strict=True))
        columns.append([min(total / count, LARGEST_BELOW_ONE) for total in sums])
    yield columns
