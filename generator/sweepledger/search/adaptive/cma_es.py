"""CMA-ES as a proposer: its state is replayed from the recorded generations, one after the other.

It adapts numbers that always exist; choices and conditional parameters are drawn at random. It sets a private
attribute of cmaes, so pyproject.toml limits its version.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from sweepledger.errors import ToolError
from sweepledger.search import encoding
from sweepledger.search.adaptive.proposer import Evidence, ProposerFactory
from sweepledger.structs.domain import Ordinal, UnitInterval
from sweepledger.structs.metric import Metric
from sweepledger.structs.record import Status
from sweepledger.structs.search_block import AdaptiveSearch
from sweepledger.structs.sweep import Sweep

try:
    import cmaes
    import numpy as np
except ImportError as error:
    raise ToolError.missing_library("method: cma-es requires the package cmaes", extra="adaptive") from error

SEED_LIMIT = 2**31 - 2
MIDDLE, WIDTH = 0.5, 1 / 6
"""Initial mean and standard deviation: three deviations reach each bound."""
MIN_DIMENSIONS = 2
"""With fewer dimensions there is no covariance to adapt."""


class CmaEsProposer:
    """An evolution strategy that has learned from all recorded generations."""

    version = f"cmaes {cmaes.__version__}"

    def __init__(
        self,
        sweep: Sweep,
        search: AdaptiveSearch,
        space: encoding.EncodedSpace,
        evidence: Sequence[Evidence],
        seed: int,
    ) -> None:
        # The ordered dimensions that every configuration has.
        dimensions = [
            dimension
            for dimension in space.dimensions
            if isinstance(dimension.kind, UnitInterval | Ordinal) and not any(dimension.conditions)
        ]
        self.indices = {dimension.name: at for at, dimension in enumerate(dimensions)}
        self.counts = [
            dimension.kind.count if isinstance(dimension.kind, Ordinal) else 0 for dimension in dimensions
        ]
        self.random = np.random.RandomState(seed % SEED_LIMIT)
        self.optimizer = None
        if len(self.indices) >= MIN_DIMENSIONS:
            usual, count = 4 + int(3 * np.log(len(self.indices))), len(self.indices)
            self.optimizer = cmaes.CMA(
                mean=np.full(count, MIDDLE),
                sigma=WIDTH,
                bounds=np.array([[0.0, 1.0]] * count),
                n_max_resampling=10 * count,
                seed=seed % SEED_LIMIT,
                # A multiple of the round size, and not less than the usual size.
                population_size=search.rounds.size * -(-usual // search.rounds.size),
            )
            for generation in self._generations(sweep.metric, evidence, self.optimizer.population_size):
                self.optimizer.tell(generation)
            self.optimizer._rng.seed(seed % SEED_LIMIT)  # noqa: SLF001 - each round has its own seed
        self.point: Any = None

    def begin(self) -> None:
        """Begin a new proposal."""
        self.point = self.optimizer.ask() if self.optimizer else None

    def propose(self, dimension: encoding.EncodedDimension) -> encoding.Coordinate:
        """Propose the candidate's coordinate in a dimension."""
        at = self.indices.get(dimension.name)
        if self.point is None or at is None:
            if isinstance(dimension.kind, UnitInterval):
                return float(self.random.random_sample())
            return int(self.random.randint(dimension.kind.count))
        number, count = float(self.point[at]), self.counts[at]
        # The indexes of an ordinal share the unit interval evenly.
        return min(int(number * count), count - 1) if count else round(number, encoding.DECIMALS)

    def end(self, *, accepted: bool) -> None:
        """End the proposal: the draws of a generation are independent, so nothing changes."""

    def add_pending(self, coordinates: encoding.Coordinates) -> None:
        """Ignore the configuration: the draws of a generation are independent."""

    def _generations(
        self, metric: Metric, evidence: Sequence[Evidence], population: int
    ) -> Iterator[list[tuple[Any, float]]]:
        """Divide the evidence into generations; failed configurations count as the worst ok value."""
        known = [metric.sort_key(entry.values[0]) for entry in evidence if entry.values is not None]
        if not known:
            return
        worst = max(known)
        generation: list[tuple[Any, float]] = []
        for entry in evidence:
            values = entry.values
            is_ok = entry.state is Status.OK and values is not None
            value = metric.sort_key(values[0]) if values is not None and is_ok else worst
            numbers = [(entry.coordinates[name], self.counts[at]) for name, at in self.indices.items()]
            point = [(number + 0.5) / count if count else float(number) for number, count in numbers]
            generation.append((np.array(point), value))
            if len(generation) == population:
                yield generation
                generation = []


create_proposer: ProposerFactory = CmaEsProposer
