"""Method latin-hypercube: as many strata in each dimension as there are points, one point in each."""

from collections.abc import Sequence

from generator.search.draws import shuffled, stream
from generator.search.sampling.points import LARGEST, Points


def points(seed: int, names: Sequence[str], count: int) -> Points:
    """Yield `count` points in one chunk; a name's coordinates stay as long as the count does."""
    yield [_coordinates(seed, name, count) for name in names]


def _coordinates(seed: int, name: str, count: int) -> list[float]:
    numbers = range(count)
    strata = shuffled(stream(seed, name, purpose="strata").words(numbers))
    places = stream(seed, name, purpose="places").uniforms(numbers)
    return [min((stratum + place) / count, LARGEST) for stratum, place in zip(strata, places, strict=True)]
