"""A sweep at a commit: trials, learning curves, the best trial, Pareto front, history and charts."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from sweepledger.api.table import SHOWN_ROWS, Chart, ResultTable, facts_html
from sweepledger.formats import summary_csv
from sweepledger.operations.reports.recorded_results import RecordedResults, recorded_results
from sweepledger.repo.git import Repository
from sweepledger.structs.names import LAPTOP_WARNING
from sweepledger.structs.record import SummaryRow
from sweepledger.structs.values import Value

NOTHING_RECORDED = summary_csv.SummaryTable((), (), ())
FIRST_CHART = "trials"


@dataclass(frozen=True, slots=True)
class RecordedTrial:
    """A trial with its result, as the summary of its sweep records it."""

    id: str
    sweep: str
    batch: str
    params: Mapping[str, Value]
    """Hyperparameters by name; absent ones are not in the mapping."""
    replicate: int
    status: str
    """`ok`, `diverged`, `pruned`, `failed` …: see the glossary."""
    reason: str | None
    error: str | None
    """What was said of its failure, such as the last line of a traceback."""
    metrics: Mapping[str, float]
    """Finite metrics by name."""
    seconds: float | None
    attempts: int
    seed: int | None
    in_spec: bool | None
    """Whether the spec contained the trial when it was recorded; None if that was unknown."""
    program: str
    """Digest of the program, 64 hex digits."""
    code: str
    """The git tree that ran."""
    started: str | None
    finished: str | None
    """UTC, ISO 8601."""
    made_on: str | None
    """`laptop` if its batch was made on one, and signed by nobody; else None."""

    def _repr_html_(self) -> str:
        notes = {"reason": self.reason, "error": self.error, "made on": self.made_on}
        result = {"status": self.status, **{name: note for name, note in notes.items() if note}}
        return facts_html(f"{self.sweep}: {self.id}", {**self.params, **self.metrics, **result})


@dataclass(frozen=True, slots=True)
class CurveStep:
    """One point of a learning curve."""

    trial: str
    metric: str
    step: int
    value: float
    """NaN if it was not finite."""


@dataclass(frozen=True, slots=True)
class SweepChange:
    """A commit that changed a sweep."""

    kind: str
    """`spec`, `batch` or `results`."""
    commit: str
    author: str
    date: str
    text: str
    best: float | None
    """The best objective, if the commit recorded results."""


@dataclass(frozen=True)
class RecordedSweep:
    """A sweep at a commit. It never changes: ask the repository again for newer results."""

    name: str
    commit: str
    _repository: Repository = field(repr=False)

    @cached_property
    def _results(self) -> RecordedResults | None:
        return recorded_results(self._repository, self.commit, self.name)

    @property
    def metric(self) -> str | None:
        """The name of the objective; None while nothing is recorded."""
        return None if self._results is None else self._results.lock.metric.name

    @property
    def goal(self) -> str | None:
        """`maximize` or `minimize`; None while nothing is recorded."""
        return None if self._results is None else str(self._results.lock.metric.goal)

    @property
    def laptop(self) -> tuple[str, ...]:
        """The recorded batches that were run on a laptop without a signature."""
        return () if self._results is None else self._results.laptop

    @cached_property
    def trials(self) -> ResultTable[RecordedTrial]:
        """All recorded trials, with the columns of `summary.csv`."""
        return self._table(() if self._results is None else self._results.table.rows)

    @cached_property
    def curves(self) -> ResultTable[CurveStep]:
        """The learning curves: one row for each reported step of each metric of each trial."""
        if self._results is None:
            return ResultTable({"trial": (), "metric": (), "step": (), "value": ()}, tuple)
        curves = self._results.curves()
        return ResultTable(
            {"trial": curves.trials, "metric": curves.metrics, "step": curves.steps, "value": curves.values},
            lambda: tuple(map(CurveStep, curves.trials, curves.metrics, curves.steps, curves.values)),
        )

    @property
    def best(self) -> RecordedTrial | None:
        """The trial with the best objective among those that may be ranked; None if there is none.

        It is the first row of `sweep results`. Seed noise is not considered here, but in the sweep's README.
        """
        ranked = self._results.ranked if self._results else ()
        return self._trial(ranked[0]) if ranked else None

    @cached_property
    def ranked(self) -> ResultTable[RecordedTrial]:
        """The trials that may be ranked, best first."""
        return self._table(() if self._results is None else self._results.ranked)

    @cached_property
    def front(self) -> ResultTable[RecordedTrial]:
        """The Pareto front; empty if the sweep has one metric."""
        return self._table(() if self._results is None else self._results.front)

    @cached_property
    def history(self) -> ResultTable[SweepChange]:
        """The commits that changed the sweep, oldest first."""
        from sweepledger.operations.reports.history import history

        events = (event for event in history(self._repository, self.commit) if event.sweep == self.name)
        return ResultTable.of(
            SweepChange,
            (
                SweepChange(str(event.kind), event.commit, event.author, event.date, event.text, event.best)
                for event in events
            ),
        )

    @cached_property
    def charts(self) -> Mapping[str, Chart]:
        """The figures of the sweep's report, by name: `trials`, `parallel`, `slices` and others."""
        figures = {} if self._results is None else self._results.figures()
        return {name: Chart(name, svg) for name, svg in figures.items()}

    def _repr_html_(self) -> str:
        best, metric = self.best, self.metric
        facts: dict[str, object] = {"commit": self.commit[:12], "trials": len(self.trials)}
        if best is not None and metric is not None:
            facts |= {f"best {metric}": best.metrics.get(metric, math.nan), "best trial": best.id}
        if self.laptop:
            facts[LAPTOP_WARNING] = ", ".join(self.laptop)
        chart = self.charts.get(FIRST_CHART)
        table = self._table(self._results.ranked[:SHOWN_ROWS]) if self._results else None
        return "".join(
            (
                facts_html(self.name, facts),
                "" if chart is None else chart._repr_html_(),
                "" if table is None else table._repr_html_(),
            )
        )

    def _table(self, rows: Iterable[SummaryRow]) -> ResultTable[RecordedTrial]:
        selected = tuple(rows)
        table = self._results.table if self._results else NOTHING_RECORDED
        columns = summary_csv.as_columns(table, selected)
        if self.laptop:
            columns["made_on"] = [self._made_on(row) for row in selected]
        return ResultTable(columns, lambda: tuple(self._trial(row) for row in selected))

    def _made_on(self, row: SummaryRow) -> str | None:
        return "laptop" if row.batch in self.laptop else None

    def _trial(self, row: SummaryRow) -> RecordedTrial:
        own: dict[str, Any] = {
            "id": row.trial,
            "sweep": self.name,
            "params": row.assignment,
            "status": str(row.status),
            "made_on": self._made_on(row),
        }
        repeated = (each.name for each in fields(RecordedTrial) if each.name not in own)
        return RecordedTrial(**own, **{name: getattr(row, name) for name in repeated})
