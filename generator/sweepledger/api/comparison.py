"""Two sweeps, or two versions of one, side by side."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from functools import cached_property

from sweepledger.api.table import ResultTable, facts_html, text_html
from sweepledger.operations.reports.comparison import Side, SweepComparison
from sweepledger.results.sweep_statistics import Estimate
from sweepledger.structs.values import Value


@dataclass(frozen=True, slots=True)
class ComparedSweep:
    """The results of one side of a comparison, with 95 % intervals, and its cost."""

    sweep: str
    """As it was asked for, such as `lr@HEAD~1`."""
    trials: int
    configurations: int
    """Configurations with a result."""
    best: float | None
    best_low: float | None
    best_high: float | None
    top: float | None
    """Mean of the best five configurations."""
    top_low: float | None
    top_high: float | None
    hours: float
    gpu_hours: float | None
    money: float | None


@dataclass(frozen=True, slots=True)
class ComparedProgress:
    """The best value of one side after some configurations, and a 95 % interval of the best of as many random ones."""

    sweep: str
    configurations: int
    best: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ComparedTrial:
    """A configuration and replicate that both sides have."""

    params: Mapping[str, Value]
    replicate: int
    a: float | None
    b: float | None
    difference: float | None
    """B less A; None if one has no result, or the two are not ranked."""


@dataclass(frozen=True)
class ComparisonResult:
    """Two sides, A and B, with uncertainty: a bootstrap over configurations, with a fixed seed."""

    _comparison: SweepComparison = field(repr=False)

    @property
    def refused(self) -> tuple[str, ...]:
        """Why the sides are not ranked; empty if they are."""
        return self._comparison.refused

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that affect how to read the comparison."""
        return self._comparison.warnings

    @property
    def b_better(self) -> float | None:
        """Share of the resamples in which B has the better mean of the best; None if they are not ranked."""
        difference = self._comparison.difference
        return None if difference is None else difference.b_better

    @cached_property
    def sweeps(self) -> ResultTable[ComparedSweep]:
        """The results and the cost of each side: A, then B."""
        return ResultTable.of(ComparedSweep, map(_compared_sweep, (self._comparison.a, self._comparison.b)))

    @cached_property
    def best_so_far(self) -> ResultTable[ComparedProgress]:
        """The best value of each side after 1, 2, … configurations."""
        return ResultTable.of(
            ComparedProgress,
            (
                ComparedProgress(side.reference, *astuple(point))
                for side in (self._comparison.a, self._comparison.b)
                for point in side.statistics.best_so_far
            ),
        )

    @cached_property
    def pairs(self) -> ResultTable[ComparedTrial]:
        """The configurations that both sides have, largest gain of B first."""
        pairs = self._comparison.pairs
        trials = tuple(
            ComparedTrial(pair.assignment, pair.replicate, *pair.values, pair.difference) for pair in pairs
        )
        names = dict.fromkeys(name for trial in trials for name in trial.params)
        columns = dict(ResultTable.of(ComparedTrial, trials).columns)
        del columns["params"]
        parameters = {f"params.{name}": [trial.params.get(name) for trial in trials] for name in names}
        return ResultTable(parameters | columns, lambda: trials)

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{text_html(note)}</p>" for note in (*self.refused, *self.warnings))
        names = f"{self._comparison.a.reference}, {self._comparison.b.reference}"
        facts = {"share of resamples in which the second is better": self.b_better}
        return (
            f"{facts_html(names, {} if self.b_better is None else facts)}{self.sweeps._repr_html_()}{notes}"
        )


def _compared_sweep(side: Side) -> ComparedSweep:
    statistics, spent = side.statistics, side.spent
    return ComparedSweep(
        *(side.reference, len(side.rows), len(statistics.values)),
        *_limits(statistics.best),
        *_limits(statistics.top),
        *(spent.trial_hours, spent.gpu_hours, spent.money),
    )


def _limits(estimate: Estimate | None) -> tuple[float | None, float | None, float | None]:
    """Return a number with the ends of its interval if they exist."""
    return (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)
