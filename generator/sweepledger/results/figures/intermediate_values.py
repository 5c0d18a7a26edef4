"""`figures/curves.svg`: the learning curve of every trial, up to its last step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sweepledger.results.figures import svg
from sweepledger.results.figures.axis import Axis
from sweepledger.results.figures.page import mark, open_figure
from sweepledger.results.figures.plot import (
    LEGEND,
    Plot,
    group_class,
    line_class,
    thin_lines,
    thinning_notes,
    winners,
)
from sweepledger.results.objective_scale import ObjectiveScale
from sweepledger.results.summary import Summary
from sweepledger.structs.record import Status, TrialResult


@dataclass(frozen=True, slots=True)
class TrialCurve:
    """A trial of the newest program with its finite intermediate values."""

    outcome: TrialResult
    points: tuple[tuple[int, float], ...]
    origin: tuple[int, float] | None = None
    """The last point of its parent trial, whose training it continues."""

    @property
    def path(self) -> tuple[tuple[int, float], ...]:
        """The points to draw: joined to the parent's, so that a promoted trial is one line."""
        return self.points if self.origin is None else (self.origin, *self.points)

    @property
    def is_pruned(self) -> bool:
        """Whether it was stopped early because others were better."""
        return self.outcome.status is Status.PRUNED


def trial_curves(summary: Summary) -> list[TrialCurve]:
    """Return the trials with more than one intermediate value, by their last value, best first."""
    curves = []
    for outcome in summary.outcomes:
        record = outcome.record
        if record is not None and summary.is_current(outcome):
            compared = record.curve(summary.metric.of_curve)
            points = tuple((step, value) for step, value in compared if value is not None)
            curves += [TrialCurve(outcome, points)] if len(points) > 1 else []
    by_trial = {curve.outcome.trial: curve for curve in curves}
    curves = [
        replace(curve, origin=origin_of(curve, by_trial.get(curve.outcome.parent or ""))) for curve in curves
    ]
    best_first = summary.metric.sort_key
    return sorted(
        curves, key=lambda curve: (curve.is_pruned, best_first(curve.points[-1][1]), curve.outcome.trial)
    )


def origin_of(curve: TrialCurve, parent: TrialCurve | None) -> tuple[int, float] | None:
    """Return where the parent of a trial ended; None without one, and if the trial began again."""
    end = None if parent is None else parent.points[-1]
    return end if end is not None and end[0] < curve.points[0][0] else None


def draw_intermediate_values(summary: Summary, curves: Sequence[TrialCurve]) -> str:
    """Return the figure of the curves; the best are drawn last, so that no other hides them."""
    drawn = thin_lines(curves)
    spread = ObjectiveScale.of([value for line in drawn for _, value in line.points], summary.metric.goal)
    root, top = open_figure(
        summary.sweep,
        f"{summary.metric.of_curve} over the steps",
        description=f"{len(curves)} trials reported {summary.metric.of_curve} more than once.",
        legend=list(_entries(summary, drawn)),
    )
    metric = replace(summary.metric, name=summary.metric.of_curve)
    plot = Plot.across_page(root, summary, spread, metric, top=top)
    plot.grid(labelled=True)
    across = plot.numbers([float(step) for line in drawn for step, _ in line.points])
    _draw(plot, across, drawn, curves)
    return plot.close(root, "step", _remarks(drawn, curves, spread))


def _entries(summary: Summary, drawn: Sequence[TrialCurve]) -> Iterator[tuple[str, str]]:
    if any(line.outcome.trial in winners(summary) for line in drawn):
        yield "chosen", "best"
    yield from LEGEND
    if any(line.is_pruned for line in drawn):
        yield "cross", "stopped early"


def _draw(plot: Plot, across: Axis, drawn: Sequence[TrialCurve], curves: Sequence[TrialCurve]) -> None:
    part = svg.group(plot.part, group_class(len(drawn)))
    best = winners(plot.summary)
    ranks = {line.outcome.trial: rank for rank, line in enumerate(curves)}
    for line in reversed(drawn):
        places = [(across.at(step), plot.height(value)) for step, value in line.path]
        kind = "chosen" if line.outcome.trial in best else line_class(ranks[line.outcome.trial], len(curves))
        # A line ends where the steps begin again, as with folds.
        starts = [True, *(step >= later for (step, _), (later, _) in pairwise(line.path))]
        svg.path(part, kind, [("M" if start else "L", *at) for start, at in zip(starts, places, strict=True)])
        if line.is_pruned:
            mark(part, "cross", places[-1])


def _remarks(
    drawn: Sequence[TrialCurve], curves: Sequence[TrialCurve], spread: ObjectiveScale
) -> Iterator[str]:
    yield from thinning_notes(len(drawn), len(curves))
    if spread.beyond:
        yield f"{spread.beyond} points beyond the axis are drawn at its end."
