"""How evenly points fill their space, beside what chance would give."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """The centred discrepancy of a block's points, squared: 0 is best."""

    points: int
    """Looked at: the first of the block."""
    dimensions: int
    """Continuous ones: the gaps between listed values would outweigh what points make of the others."""
    value: float

    @property
    def random(self) -> float:
        """What as many points drawn independently have on average."""
        # The double sum of the definition has n diagonal terms of mean (5/4)^d. All others, and those of the
        # single sum, have the mean (13/12)^d, of which one n-th is left.
        return ((5 / 4) ** self.dimensions - (13 / 12) ** self.dimensions) / self.points
