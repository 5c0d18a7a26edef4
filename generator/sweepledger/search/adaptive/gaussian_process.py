"""egobox's Gaussian process as a proposer: evidence in, proposals out; without torch.

It calls only public methods of egobox, but another version may propose other configurations, so pyproject.toml
limits its version.
"""

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any, assert_never

from sweepledger.errors import ToolError
from sweepledger.search import encoding
from sweepledger.search.adaptive.proposer import Evidence, ModelError, ProposerFactory
from sweepledger.search.rng import RandomSequence
from sweepledger.structs.domain import Categorical, Ordinal, UnitInterval
from sweepledger.structs.metric import Metric
from sweepledger.structs.record import Status
from sweepledger.structs.search_block import AdaptiveSearch
from sweepledger.structs.sweep import Sweep

try:
    import egobox
    import numpy as np
except ImportError as error:
    raise ToolError.missing_library(
        "method: bayes requires the package egobox", extra="bayes", alternative=", or method: tpe"
    ) from error

SEED_LIMIT = 2**31 - 1

LARGEST = 1e100
"""Larger losses are counted as this, because the model squares them."""

MOST_WORK = 24_000
"""Configurations times the square of the columns: the time of a proposal, of which 12,000 take about a second."""

MOST_ROWS = 320
"""Configurations, whatever their columns: the time of a proposal grows with their cube, too."""

INVERSE_LENGTHS = [0.01, 1.0]
"""Bounds of the kernel's inverse lengths. egobox's model has no noise: with shorter lengths, it takes the ripples of a
function for its shape and, being sure of nothing between trials, searches at random."""

Row = list[float]
Losses = list[float]
"""One number to minimize for each metric."""


class GaussianProcessProposer:
    """A Gaussian process over all dimensions; a configuration is at the middle of each dimension that it lacks.

    A configuration without results gets the losses of its nearest neighbour with results. The model is then certain
    there, so the next proposal is elsewhere. One loss for all would mislead it where losses differ by magnitudes.
    Rejected proposals count as the worst. If a proposal would take longer than seconds, the model learns from the best
    configurations only: a bound by sizes, so that every machine proposes the same.
    """

    version = f"egobox {version('egobox')}"

    def __init__(
        self,
        sweep: Sweep,
        search: AdaptiveSearch,
        space: encoding.EncodedSpace,
        evidence: Sequence[Evidence],
        seed: int,
    ) -> None:
        metrics = sweep.metrics
        self.dimensions = space.dimensions
        self.random = RandomSequence(seed)
        self.seed = seed % SEED_LIMIT
        self.startup = search.rounds.startup
        last = [0 if isinstance(each.kind, UnitInterval) else each.kind.count - 1 for each in self.dimensions]
        self.spans = [max(1, end) for end in last]
        self.middles = {
            each.name: 0.5 if isinstance(each.kind, UnitInterval) else end // 2
            for each, end in zip(self.dimensions, last, strict=True)
        }
        self.specs = [_spec(dimension) for dimension in self.dimensions]
        self.columns = space.columns
        self.rows: list[Row] = []
        self.losses: list[Losses] = []
        for row, losses in self._results(metrics, evidence):
            self._add(row, losses)
        columns = list(zip(*self.losses, strict=True))
        self.worst = [max(column) for column in columns] or [0.0] * len(metrics)
        self.results = len(self.rows)
        self.proposals = 0
        self.point: Row | None = None
        self.proposed: dict[str, encoding.Coordinate] = {}

    def begin(self) -> None:
        """Begin a new proposal."""
        self.proposals += 1
        self.proposed = {}
        self.point = self._suggest() if self.results and len(self.rows) >= self.startup else None

    def propose(self, dimension: encoding.EncodedDimension) -> encoding.Coordinate:
        """Propose the candidate's coordinate in a dimension."""
        at = next(at for at, one in enumerate(self.dimensions) if one.name == dimension.name)
        kind = dimension.kind
        coordinate: encoding.Coordinate
        if isinstance(kind, UnitInterval):
            number = self.random.fraction() if self.point is None else min(max(self.point[at], 0.0), 1.0)
            coordinate = round(number, encoding.DECIMALS)
        elif self.point is None:
            coordinate = self.random.below(kind.count)
        else:
            coordinate = min(max(round(self.point[at]), 0), kind.count - 1)
        self.proposed[dimension.name] = coordinate
        return coordinate

    def end(self, *, accepted: bool) -> None:
        """End the proposal: an accepted one counts as pending, a rejected one as bad."""
        row = self._row(self.proposed)
        self._add(row, self._guess(row) if accepted else self.worst)

    def add_pending(self, coordinates: encoding.Coordinates) -> None:
        """Add a configuration without results."""
        row = self._row(coordinates)
        self._add(row, self._guess(row))

    def _add(self, row: Row, losses: Losses) -> None:
        self.rows.append(row)
        self.losses.append(losses)

    def _guess(self, row: Row) -> Losses:
        """Return the losses of the nearest configuration with results; without results, no model is fitted yet."""
        if not self.results:
            return self.worst

        def distance(at: int) -> float:
            return sum(
                float(a != b) if isinstance(dimension.kind, Categorical) else ((a - b) / span) ** 2
                for dimension, span, a, b in zip(self.dimensions, self.spans, row, self.rows[at], strict=True)
            )

        return self.losses[min(range(self.results), key=distance)]

    def _results(
        self, metrics: Sequence[Metric], evidence: Sequence[Evidence]
    ) -> Iterator[tuple[Row, Losses]]:
        """Yield points and losses for the model; a trial stopped early never counts as better than a complete one."""
        known = [
            (
                entry,
                [min(max(loss, -LARGEST), LARGEST) for loss in map(Metric.sort_key, metrics, entry.values)],
            )
            for entry in evidence
            if entry.values is not None
        ]
        ok = [losses for entry, losses in known if entry.state is Status.OK]
        worst = [max(column) for column in zip(*ok, strict=True)]
        for entry, losses in known if ok else ():
            is_stopped = entry.state is Status.PRUNED
            yield self._row(entry.coordinates), list(map(max, losses, worst)) if is_stopped else losses

    def _row(self, coordinates: encoding.Coordinates) -> Row:
        return [float(coordinates.get(name, middle)) for name, middle in self.middles.items()]

    def _suggest(self) -> Row:
        """Let the model suggest a point. Raises ModelError if it cannot be fitted."""
        learned = self._learned()
        rows = np.array([self.rows[at] for at in learned])
        losses = np.array([self.losses[at] for at in learned])
        seed = (self.seed + self.proposals) % SEED_LIMIT
        config = egobox.GpConfig(corr_spec=egobox.CorrelationSpec.MATERN52, theta_bounds=[INVERSE_LENGTHS])
        options: dict[str, Any] = {"gp_config": config, "seed": self.seed}
        metrics = losses.shape[1]
        try:
            if metrics == 1:
                model = egobox.Egor(self.specs, **options)
            else:
                model = egobox.Belfegor(self.specs, n_obj=metrics, **options)
            return [float(number) for number in model.suggest(rows, losses, seed=seed)[0]]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of egobox is no Exception
            raise ModelError(f"egobox cannot fit {len(rows)} trials") from error

    def _learned(self) -> Sequence[int]:
        """Return the rows that the model learns from: all, or the best results and the newest of the rest."""
        most = min(MOST_ROWS, MOST_WORK // self.columns**2)
        if len(self.rows) <= most:
            return range(len(self.rows))
        others = range(max(self.results, len(self.rows) - most // 2), len(self.rows))
        ranks = [0] * self.results
        for metric in range(len(self.losses[0])):
            ordered = sorted(range(self.results), key=lambda at: self.losses[at][metric])
            for rank, at in enumerate(ordered):
                ranks[at] += rank
        best = sorted(range(self.results), key=lambda at: (ranks[at], at))[: most - len(others)]
        return [*sorted(best), *others]


def _spec(dimension: encoding.EncodedDimension) -> Any:
    match dimension.kind:
        case UnitInterval():
            return egobox.XSpec(egobox.XType.FLOAT, [0.0, 1.0])
        case Ordinal(count):
            return egobox.XSpec(egobox.XType.INT, [0, count - 1])
        case Categorical(count):
            return egobox.XSpec(egobox.XType.ENUM, [count])
        case _:
            assert_never(dimension.kind)


create_proposer: ProposerFactory = GaussianProcessProposer
