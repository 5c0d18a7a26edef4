"""Quantiles of samples."""

from collections.abc import Sequence
from math import floor


def interpolated_quantile(ordered: Sequence[float], share: float) -> float:
    """Return the quantile of sorted numbers, interpolated between neighbours; a share of 0.5 is the median."""
    position = share * (len(ordered) - 1)
    before = floor(position)
    after = min(before + 1, len(ordered) - 1)
    rest = position - before
    # Without these cases, an infinite neighbour would make the result not a number.
    if rest == 0 or ordered[before] == ordered[after]:
        return ordered[before]
    return ordered[before] + rest * (ordered[after] - ordered[before])
