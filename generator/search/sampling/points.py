"""What all methods give: points in chunks, a list a dimension, each coordinate 0 or more and less than 1."""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat

Points = Iterator[Sequence[Sequence[float]]]

LARGEST = 1 - 2.0**-53
"""The last double before 1, for sums that round up."""

_FIRST = 2**6
_MOST = 2**12
"""Few sweeps need more than the first, and none should compute many more than it needs."""


def chunks() -> Iterator[range]:
    """Number points from 0 without end, in chunks that double at first; each is a power of two."""
    start = 0
    for size in chain((_FIRST << number for number in range((_MOST // _FIRST).bit_length())), repeat(_MOST)):
        yield range(start, start + size)
        start += size
