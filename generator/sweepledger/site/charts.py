"""The charts of a sweep's page: their columns, axes in the terms of Vega-Lite, and a sentence for each.

`assets/marks.js` draws them. Their content has the same definitions as the report: the objective's scale, the
scale of a parameter, importance, the Pareto front and the curves come from `results`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import combinations
from typing import Any

from sweepledger.formats.summary_csv import parameter_names
from sweepledger.results import display
from sweepledger.results.figures.axis import MOST_LABELLED_LEVELS, levels
from sweepledger.results.importance import Importance
from sweepledger.results.objective_scale import ObjectiveScale
from sweepledger.results.summary import Summary, as_numbers, pareto_front
from sweepledger.structs.metric import Goal
from sweepledger.structs.record import TrialResult
from sweepledger.structs.values import Value, canonical_json

MOST_METRICS = 64
"""Metrics that trials invent beyond this are in the records only."""
DIGITS = 10
"""Significant digits of measured numbers: more than a chart shows, and half the size."""


@dataclass(frozen=True, slots=True)
class TrialColumn:
    """One property of every trial."""

    key: str
    title: str
    values: tuple[Any, ...]
    """A number or None for each trial; of a nominal column, the number of the category."""
    categories: tuple[str, ...] | None = None
    """Names of a nominal column's categories; None for numbers."""
    log: bool = False
    """Whether a chart of it has a logarithmic axis."""
    domain: tuple[float, float] | None = None
    """Range of the axis where outliers are beyond it; None: that of the values."""
    ticks: tuple[float, ...] = ()
    """The values themselves where they are few, which then label the axis."""

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data, without defaults."""
        shown = ((field, getattr(self, field.name)) for field in fields(self))
        return {field.name: value for field, value in shown if value != field.default}


OBJECTIVE, SECONDS, NUMBER, HOURS = "objective", "seconds", "number", "hours"
COST, STATUS, BATCH, REPLICATE = "cost", "status", "batch", "replicate"
PARAMETER, METRIC = "params.", "metrics."


def trial_columns(
    summary: Summary, prices: Mapping[str, float] | None = None, currency: str = ""
) -> tuple[TrialColumn, ...]:
    """Return the columns of a sweep, in the order of its table; `prices` is the hourly price of a trial by batch."""
    trials, metric = summary.outcomes, summary.metric
    # The objective of the trials that are ranked or ran an earlier program; of others, nothing.
    objectives = [one.metric(metric.name) for one in trials]
    scale = ObjectiveScale.of([value for value in objectives if value is not None], metric.goal)
    domain = (scale.low, scale.high) if scale.beyond else None
    records = [one.record for one in trials]
    others = {name for record in records if record for name in record.metrics} - {metric.name}
    columns = [
        _nominal(STATUS, "status", [str(one.status) for one in trials]),
        TrialColumn(OBJECTIVE, metric.name, tuple(map(_rounded, objectives)), log=scale.log, domain=domain),
        *(_parameter(name, trials) for name in parameter_names(trials)),
        *(
            _numbers(
                METRIC + name, name, (record.metrics.get(name) if record else None for record in records)
            )
            for name in sorted(others)[:MOST_METRICS]
        ),
        _numbers(SECONDS, "seconds", (record.seconds if record else None for record in records)),
        _nominal(BATCH, "batch", [one.batch for one in trials]),
        TrialColumn(NUMBER, "trial number", tuple(range(1, len(trials) + 1))),
        _spent(HOURS, "computing time in hours", trials, [1.0 for _ in trials]),
    ]
    if prices and all(one.batch in prices for one in trials):
        title = f"cost in {currency}" if currency else "cost"
        columns.append(_spent(COST, title, trials, [prices[one.batch] for one in trials]))
    programs = {batch.lock.program.digest: batch.lock.program.digest[:8] for batch in summary.batches}
    if len(programs) > 1:
        columns.append(_nominal("program", "program", [programs[one.program] for one in trials]))
    environments = [record.environment if record else None for record in records]
    software = [f"{each.kind} {each.digest[:19]}" if each else None for each in environments]
    for key, values in (("pool", [one.node_class for one in trials]), ("software", software)):
        if any(values):
            columns.append(_nominal(key, key, values))
    if any(one.replicate for one in trials):
        columns.append(TrialColumn(REPLICATE, "replicate", tuple(one.replicate for one in trials)))
    return tuple(columns)


def _parameter(name: str, trials: Sequence[TrialResult]) -> TrialColumn:
    distinct: dict[str, Value] = {}
    for one in trials:
        if name in one.assignment:
            distinct.setdefault(canonical_json(one.assignment[name]), one.assignment[name])
    values = list(distinct.values())
    if (numbers := as_numbers(values)) is not None and numbers:
        # The scale that the figures of the report have.
        log = levels(values, 0.0, 1.0).log
        listed = tuple(one.assignment.get(name) for one in trials)
        ticks = tuple(sorted(numbers)) if len(numbers) <= MOST_LABELLED_LEVELS else ()
        return TrialColumn(PARAMETER + name, name, listed, log=log, ticks=ticks)
    shown = {key: display.format_value(value) for key, value in distinct.items()}
    return _nominal(
        PARAMETER + name,
        name,
        [shown[canonical_json(one.assignment[name])] if name in one.assignment else None for one in trials],
    )


def _spent(key: str, title: str, trials: Sequence[TrialResult], rates: Sequence[float]) -> TrialColumn:
    """Return the total spending up to the end of each trial, given the hourly rate of each."""
    ended = sorted(
        (one.record.finished, place, one.record.seconds) for place, one in enumerate(trials) if one.record
    )
    total, spent = 0.0, list[float | None]([None] * len(trials))
    for _, place, seconds in ended:
        total += seconds / 3600 * rates[place]
        spent[place] = _rounded(total)
    return TrialColumn(key, title, tuple(spent))


def _numbers(key: str, title: str, values: Iterable[float | None]) -> TrialColumn:
    return TrialColumn(key, title, tuple(map(_rounded, values)))


def _nominal(key: str, title: str, values: Sequence[str | None]) -> TrialColumn:
    """Return a column of categories, in the order of their first appearance."""
    numbers: dict[str, int] = {}
    for value in values:
        if value is not None:
            numbers.setdefault(value, len(numbers))
    places = tuple(None if value is None else numbers[value] for value in values)
    return TrialColumn(key, title, places, tuple(numbers))


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")


MOST_SLICES = 12
MOST_AXES = 12
MOST_PAIRED = 3
"""Parameters, the most important, of which each two are shown together."""


class ChartMark(StrEnum):
    """How a chart draws trials."""

    POINT = "point"
    PAIR = "pair"
    """Points of two parameters: their colour is the objective, and the best of equal places is on top."""
    STEP = "step"
    """Points, and the best value so far as a line of steps."""
    FRONT = "front"
    """Points, with those of the Pareto front joined."""
    LINE = "line"
    """The learning curve of each trial."""
    PARALLEL = "parallel"
    """A line for each trial over several axes."""
    BAR = "bar"
    """The number of trials by range of values."""


@dataclass(frozen=True, slots=True)
class SweepChart:
    """A chart of trials."""

    name: str
    title: str
    mark: ChartMark
    description: str
    """What it shows, for people who do not see it."""
    x: tuple[str, ...] = ()
    """Keys of columns; with several, readers choose one. Of parallel coordinates, the axes."""
    y: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data that draws it."""
        return {"name": self.name, "mark": str(self.mark), "x": self.x, "y": self.y}


def sweep_charts(
    summary: Summary, columns: Sequence[TrialColumn], importance: Importance, curves: int
) -> Iterator[SweepChart]:
    """Yield the charts that a sweep has, in the order of its page."""
    metric = summary.metric
    ranked = sum(one.metric(metric.name) is not None for one in summary.outcomes)
    keys = {column.key for column in columns}
    direction = "higher" if metric.goal is Goal.MAXIMIZE else "lower"
    best = "" if summary.best is None else f" The best is {display.format_number(summary.best)}."
    yield SweepChart(
        "history",
        f"{metric.name}, trial by trial",
        ChartMark.STEP,
        f"{metric.name} of {display.count_trials(ranked)}, {direction} is better,"
        f" with the best so far as a line.{best}",
        tuple(key for key in (NUMBER, HOURS, COST) if key in keys),
        OBJECTIVE,
    )
    if curves:
        yield SweepChart(
            "curves",
            "Learning curves",
            ChartMark.LINE,
            f"{metric.of_curve} over the steps of {display.count_trials(curves)}. The curve of a trial that continues"
            " another is joined to it.",
        )
    # In the order of importance, as in the report.
    varied = [each.parameter for each in importance.parameters]
    if varied:
        axes = [PARAMETER + name for name in varied[:MOST_AXES]]
        yield SweepChart(
            "parallel",
            "Parallel coordinates",
            ChartMark.PARALLEL,
            f"Each line is a trial, across {', '.join(varied[:MOST_AXES])} and {metric.name}.",
            (*axes, OBJECTIVE),
        )
    for number, name in enumerate(varied[:MOST_SLICES]):
        yield SweepChart(
            f"slice-{number}",
            name,
            ChartMark.POINT,
            f"{metric.name} of each trial by its value of {name}.",
            (PARAMETER + name,),
            OBJECTIVE,
        )
    for number, (first, second) in enumerate(combinations(varied[:MOST_PAIRED], 2)):
        yield SweepChart(
            f"pair-{number}",
            f"{first} and {second}",
            ChartMark.PAIR,
            f"Each trial by its values of {first} and {second}; the darker or, on dark pages, the brighter, the"
            f" better its {metric.name}. If the best {first} differs between the values of {second}, they interact.",
            (PARAMETER + first,),
            PARAMETER + second,
        )
    others = [each.name for each in summary.lock.metrics[1:]]
    if others and METRIC + others[0] in keys:
        yield SweepChart(
            "front",
            f"Pareto front of {metric.name} and {others[0]}",
            ChartMark.FRONT,
            f"{metric.name} and {others[0]} of each trial; no other trial beats the"
            f" {len(pareto_front(summary))} joined ones in every metric.",
            (METRIC + others[0],),
            OBJECTIVE,
        )
    if any(one.record is not None for one in summary.outcomes):
        yield SweepChart(
            "durations", "Durations in seconds", ChartMark.BAR, "Number of trials by duration.", (SECONDS,)
        )
