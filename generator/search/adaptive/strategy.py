"""CMA-ES: its state is what its generations were, played again from the records, one after the other.

Numbers that always exist are its own; choices and conditional parameters are drawn by chance.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from generator.errors import ToolError
from generator.search.adaptive.coding import DECIMALS, CodedSpace, Dimension, Fraction, Ordered, Place, Places
from generator.search.adaptive.evidence import State
from generator.search.adaptive.proposing import Told
from generator.structs.adaptive import Search
from generator.structs.sweep import Goal, Metric

try:
    import cmaes
    import numpy as np
except ImportError as error:
    raise ToolError(
        "method: cma-es is carried out by the package cmaes, which is not installed",
        hint="`pip install 'sweepledger[adaptive]'`",
    ) from error

SEED_LIMIT = 2**31 - 2
MIDDLE, WIDTH = 0.5, 1 / 6
"""Where a search begins, and how far it looks: three standard deviations reach each bound."""
FEWEST = 2
"""Dimensions without which there is nothing to adapt."""


def own_dimensions(space: CodedSpace) -> tuple[Dimension, ...]:
    """Choose the dimensions that can be walked along, and that every assignment has."""
    return tuple(
        one
        for one in space.dimensions
        if isinstance(one.kind, Fraction | Ordered) and not any(one.conditions)
    )


class Strategy:
    """An evolution strategy that went through all generations that are recorded."""

    version = f"cmaes {cmaes.__version__}"

    def __init__(
        self, metric: Metric, search: Search, space: CodedSpace, told: Sequence[Told], seed: int
    ) -> None:
        self.names = {one.name: at for at, one in enumerate(own_dimensions(space))}
        self.counts = [
            one.kind.count if isinstance(one.kind, Ordered) else 0 for one in own_dimensions(space)
        ]
        self.random = np.random.RandomState(seed % SEED_LIMIT)
        self.optimizer = None
        if len(self.names) >= FEWEST:
            self.optimizer = _begun(len(self.names), search.rounds.size, seed)
            for generation in self._generations(metric, told, self.optimizer.population_size):
                self.optimizer.tell(generation)
            self.optimizer._rng.seed(seed % SEED_LIMIT)  # noqa: SLF001 - a round has a seed of its own
        self.point: Any = None

    def begin(self) -> None:
        """Begin a new proposal."""
        self.point = self.optimizer.ask() if self.optimizer else None

    def place(self, dimension: Dimension) -> Place:
        """Propose where on a dimension the candidate lies."""
        at = self.names.get(dimension.name)
        if self.point is None or at is None:
            return self._by_chance(dimension)
        return _place(float(self.point[at]), self.counts[at])

    def end(self, *, accepted: bool) -> None:
        """End the proposal: every draw of a generation is independent of the others."""

    def taken(self, places: Places) -> None:
        """Hear of an assignment that is tried in this round without having been proposed."""

    def _by_chance(self, dimension: Dimension) -> Place:
        if isinstance(dimension.kind, Fraction):
            return float(self.random.random_sample())
        return int(self.random.randint(dimension.kind.count))

    def _generations(
        self, metric: Metric, told: Sequence[Told], population: int
    ) -> Iterator[list[tuple[Any, float]]]:
        """Cut what is recorded into generations; what failed is as bad as the worst that did not."""
        sign = -1.0 if metric.goal is Goal.MAXIMIZE else 1.0
        fine = [one.evidence.values[0] for one in told if one.evidence.values is not None]
        if not fine:
            return
        bad = max(sign * value for value in fine)
        found: list[tuple[Any, float]] = []
        for one in told:
            values = one.evidence.values
            is_fine = one.evidence.state is State.OK and values is not None
            value = sign * values[0] if values is not None and is_fine else bad
            found.append((np.array(self._point(one.places)), value))
            if len(found) == population:
                yield found
                found = []

    def _point(self, places: Places) -> list[float]:
        return [_coordinate(places[name], self.counts[at]) for name, at in self.names.items()]


def _begun(dimensions: int, size: int, seed: int) -> "cmaes.CMA":
    usual = 4 + int(3 * np.log(dimensions))
    return cmaes.CMA(
        mean=np.full(dimensions, MIDDLE),
        sigma=WIDTH,
        bounds=np.array([[0.0, 1.0]] * dimensions),
        n_max_resampling=10 * dimensions,
        seed=seed % SEED_LIMIT,
        # Whole rounds, as many as make up a population of the usual size.
        population_size=size * -(-usual // size),
    )


def _place(coordinate: float, count: int) -> Place:
    """Find the place of a coordinate: whole numbers share the unit interval evenly."""
    return min(int(coordinate * count), count - 1) if count else round(coordinate, DECIMALS)


def _coordinate(place: Place, count: int) -> float:
    return (place + 0.5) / count if count else float(place)
