"""What a search may still ask for: bounds only, since nobody knows what its records will say."""

from dataclasses import dataclass

from generator.structs.adaptive import Search
from generator.structs.sweep import Sweep


@dataclass(frozen=True, slots=True)
class Ahead:
    """The rounds that a merge approves beside those that were asked for."""

    size: int
    """Trials of a round, replicates included, at most."""
    trials: int | None
    """None: nothing bounds them but what the records will say."""
    rounds: int | None
    """Likewise."""


def ahead(sweep: Sweep, search: Search, *, trials: int, rounds: int, most: int | None = None) -> Ahead:
    """Bound what follows after so many trials and rounds, for a method whose rounds are all of one size.

    `most` are all the trials that its limits bear.
    """
    size = search.rounds.size * sweep.replicates
    left = [
        None if search.rounds.max is None else max(0, search.rounds.max - rounds) * size,
        None if search.cap is None else search.cap * sweep.replicates - trials,
        None if most is None else most - trials,
    ]
    least = min((max(0, one) for one in left if one is not None), default=None)
    return Ahead(size, least, None if least is None else -(-least // size))
