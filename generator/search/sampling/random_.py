"""Method random: each coordinate of each point is independent of all others."""

from collections.abc import Sequence

from generator.search.draws import stream
from generator.search.sampling.points import Points, chunks


def points(seed: int, names: Sequence[str]) -> Points:
    """Yield points without end; a name's coordinates stay, whatever other names there are."""
    streams = [stream(seed, name, purpose="random") for name in names]
    for numbers in chunks():
        yield [found.uniforms(numbers) for found in streams]
