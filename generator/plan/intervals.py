"""A number that nobody knows exactly: its middle, and what eight of ten draws lie within."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

LOW, HIGH = 0.1, 0.9


@dataclass(frozen=True, slots=True)
class Interval:
    """Quantiles."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, draws: Sequence[float]) -> "Interval":
        """Take the quantiles of some draws."""
        ordered = sorted(draws)
        return cls(*(_quantile(ordered, share) for share in (LOW, 0.5, HIGH)))

    @classmethod
    def exactly(cls, value: float) -> "Interval":
        """Give what leaves nothing to chance."""
        return cls(value, value, value)

    @property
    def is_exact(self) -> bool:
        """Tell whether nothing is left to chance."""
        return self.low == self.high

    def times(self, factor: float) -> "Interval":
        """Scale it."""
        return Interval(self.low * factor, self.median * factor, self.high * factor)


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    before = floor(place)
    after = min(before + 1, len(ordered) - 1)
    if ordered[before] == ordered[after]:  # at infinity, too
        return ordered[before]
    return ordered[before] + (ordered[after] - ordered[before]) * (place - before)
