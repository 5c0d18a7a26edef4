"""The sampler random: independent points of the unit cube; and what all samplers share.

The seed and the names of the dimensions determine every coordinate, which is at least 0 and less than 1. Points come in
chunks.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat

from sweepledger.search.rng import stream

Points = Iterator[Sequence[Sequence[float]]]

LARGEST_BELOW_ONE = 1 - 2.0**-53
"""The largest double below 1, for sums that round up."""

_FIRST_CHUNK = 2**6
_MAX_CHUNK = 2**12
"""Most sweeps need only the first chunk; small chunks avoid computing many unused points."""


def index_chunks() -> Iterator[range]:
    """Yield ranges of point numbers from 0, without end; sizes are powers of two that double at first."""
    start = 0
    for size in chain(
        (_FIRST_CHUNK << number for number in range((_MAX_CHUNK // _FIRST_CHUNK).bit_length())),
        repeat(_MAX_CHUNK),
    ):
        yield range(start, start + size)
        start += size


def points(seed: int, names: Sequence[str], _: int) -> Points:
    """Yield points without end; a name's coordinates do not depend on other names."""
    streams = [stream(seed, name, purpose="random") for name in names]
    for numbers in index_chunks():
        yield [stream_.uniforms(numbers) for stream_ in streams]
