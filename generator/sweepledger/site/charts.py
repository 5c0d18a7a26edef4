"""The charts of a sweep's page: which column is on which axis, in the words of Vega-Lite, and each chart in a sentence.

`assets/marks.js` draws them. What they show has the same definition as in the report: the objective's scale, the
scale of a parameter, importance, the Pareto front and the curves come from `results`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any

from sweepledger.results import display
from sweepledger.results.importance import Importance
from sweepledger.results.summary import Summary, pareto_front
from sweepledger.site.columns import COST, HOURS, METRIC, NUMBER, OBJECTIVE, PARAMETER, SECONDS, TrialColumn
from sweepledger.structs.metric import Goal

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
