"""Trials as lines: `figures/curves.svg`, learning curves; `figures/parallel.svg`, parallel coordinates.

The axes of the latter are horizontal, one below the other, so that any number of names and values stays readable.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar
from xml.etree.ElementTree import Element

from msgspec import structs

from sweepledger.formats.summary_csv import parameter_names
from sweepledger.results.figures import layout, svg
from sweepledger.results.figures.axis import levels, objective_axis, side_by_side
from sweepledger.results.figures.layout import EDGE, WIDTH, Frame
from sweepledger.results.figures.plot import Plot, PlottedTrial, winners
from sweepledger.results.figures.svg import BOLD, CLASSES
from sweepledger.results.importance import Importance
from sweepledger.results.objective_scale import ObjectiveScale
from sweepledger.results.summary import Summary
from sweepledger.structs.record import Status, TrialResult
from sweepledger.structs.values import canonical_json

MOST_LINES = 160
BEST_LINES = 20
"""Lines that are always drawn."""
MOST_BOLD = 60
LEGEND = ((f"c{CLASSES - 1}", "best fifth"), ("c2", "middle"), ("c0", "worst fifth"))

Line = TypeVar("Line")


def thin_lines(ranked: Sequence[Line]) -> list[tuple[int, Line]]:
    """Return the best lines and every n-th other line, each with its rank, so that they are distributed like all."""
    numbered = list(enumerate(ranked))
    if len(ranked) <= MOST_LINES:
        return numbered
    stride = _stride(len(ranked))
    return [*numbered[:BEST_LINES], *numbered[BEST_LINES + stride - 1 :: stride]]


def _stride(total: int) -> int:
    return -(-(total - BEST_LINES) // (MOST_LINES - BEST_LINES))


def _thinning_notes(drawn: int, total: int) -> Iterator[str]:
    if drawn < total:
        yield f"{drawn} of {total} trials are drawn: the best {BEST_LINES},"
        yield f"and one in {_stride(total)} of the others by rank."


def _line_group(parent: Element, drawn: int) -> Element:
    return svg.group(parent, "fine" if drawn > MOST_BOLD else "")


def _line_style(summary: Summary, trial: str, rank: int, total: int) -> str:
    """Return the style of a line by its rank among all lines, drawn or not: a fifth of them each."""
    return "chosen" if trial in winners(summary) else f"line c{CLASSES - 1 - rank * CLASSES // total}"


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
        replace(each, origin=origin_of(each, by_trial.get(each.outcome.parent or ""))) for each in curves
    ]
    best_first = summary.metric.sort_key
    return sorted(
        curves, key=lambda curve: (curve.is_pruned, best_first(curve.points[-1][1]), curve.outcome.trial)
    )


def origin_of(curve: TrialCurve, parent: TrialCurve | None) -> tuple[int, float] | None:
    """Return the last point of a trial's parent; None without a parent, or if the trial began again."""
    end = None if parent is None else parent.points[-1]
    return end if end is not None and end[0] < curve.points[0][0] else None


def draw_intermediate_values(summary: Summary, curves: Sequence[TrialCurve]) -> str:
    """Return the figure of the curves; the best are drawn last, so that other curves do not hide them."""
    drawn = thin_lines(curves)
    spread = ObjectiveScale.of([value for _, line in drawn for _, value in line.points], summary.metric.goal)
    best = [("chosen", "best")] if any(line.outcome.trial in winners(summary) for _, line in drawn) else []
    pruned = [("cross", "stopped early")] if any(line.is_pruned for _, line in drawn) else []
    root, top = layout.open_figure(
        summary.sweep,
        f"{summary.metric.of_curve} over the steps",
        description=f"{len(curves)} trials reported {summary.metric.of_curve} more than once.",
        legend=[*best, *LEGEND, *pruned],
    )
    metric = structs.replace(summary.metric, name=summary.metric.of_curve)
    plot = Plot.across_page(root, summary, spread, metric, top=top)
    plot.grid(labelled=True)
    across = plot.numbers([float(step) for _, line in drawn for step, _ in line.points])
    part = _line_group(plot.part, len(drawn))
    for rank, line in reversed(drawn):
        places = [(across.at(step), plot.height(value)) for step, value in line.path]
        # A line ends where the steps begin again, as with folds.
        starts = [True, *(step >= later for (step, _), (later, _) in pairwise(line.path))]
        steps = [("M" if start else "L", *at) for start, at in zip(starts, places, strict=True)]
        svg.path(part, _line_style(summary, line.outcome.trial, rank, len(curves)), steps)
        if line.is_pruned:
            layout.mark(part, "cross", places[-1])
    remarks = [*_thinning_notes(len(drawn), len(curves))]
    remarks += [f"{spread.beyond} points beyond the axis are drawn at its end."] * bool(spread.beyond)
    return plot.close(root, "step", remarks)


MOST_AXES = 12
NAMES = 190
"""Width of the names at the left."""
STEP = 104
LABELS = 30
"""Height of the labels below an axis, where no line is drawn."""
BAND = 30.0
"""Width of the widest band into which lines through one value are spread."""
SHARE_OF_GAP = 0.6
ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class ParallelAxis:
    """An axis across the figure, and the position at which each drawn trial crosses it."""

    name: str
    asides: tuple[str, ...]
    y: float
    ticks: tuple[tuple[float, str | float], ...]
    crossings: tuple[float, ...]


def draw_parallel_coordinate(
    summary: Summary, importance: Importance, all_drawn: Sequence[PlottedTrial]
) -> str:
    """Return the figure of the newest program's trials; the best are drawn last, so that others do not hide them."""
    best_first = summary.metric.sort_key
    current = [trial for trial in all_drawn if summary.is_current(trial.outcome)]
    ranked = sorted(current, key=lambda one: (best_first(one.objective), one.outcome.trial, one.place))
    thinned = thin_lines(ranked)
    drawn = [trial for _, trial in thinned]
    names = {each.parameter for each in importance.parameters[:MOST_AXES]}
    # In the order of the spec, which the author chose; the slices are ordered by importance.
    listed = parameter_names(trial.outcome for trial in sorted(drawn, key=lambda trial: trial.place))
    ordered = [name for name in listed if name in names]
    best = [("chosen", "best")] if summary.winner is not None else []
    root, top = layout.open_figure(
        summary.sweep,
        "parallel coordinates of all trials",
        description=f"{len(drawn)} trials as lines through {', '.join(ordered)} to {summary.metric.name}.",
        legend=[*best, *LEGEND],
    )
    top += 40
    frame = Frame(EDGE + NAMES, top, WIDTH - 2 * EDGE - NAMES, STEP * len(ordered))
    towards = int(summary.metric.sort_key(1))
    rows = [_row(name, drawn, frame, top + number * STEP, towards) for number, name in enumerate(ordered)]
    spread = importance.scale
    axis = objective_axis(spread, frame.left, frame.right)
    asides = (layout.direction(summary.metric.goal), *("log scale",) * spread.log)
    ticks = tuple((axis.at(tick), tick) for tick in axis.ticks)
    ends = tuple(axis.at(spread.at(spread.part(trial.objective))) for trial in drawn)
    rows.append(ParallelAxis(summary.metric.name, asides, frame.bottom, ticks, ends))
    part = _line_group(root, len(drawn))
    for number, (rank, trial) in reversed([*enumerate(thinned)]):
        points = [(row.crossings[number], row.y) for row in rows]
        svg.draw(part, _line_style(summary, trial.outcome.trial, rank, len(ranked)), _curve(points))
    for row in rows:
        _axis(root, row, frame)
    remarks = ["Lines through the same value are spread by their results."]
    remarks += _thinning_notes(len(drawn), len(ranked))
    if len(importance.parameters) > MOST_AXES:
        remarks.append(
            f"The most important {MOST_AXES} of {len(importance.parameters)} parameters are drawn."
        )
    if spread.beyond:
        remarks.append(f"{spread.beyond} trials beyond the last axis are drawn at its end.")
    return layout.close_figure(root, remarks, frame.bottom + 22 + 23 * len(asides))


def _row(name: str, drawn: Sequence[PlottedTrial], frame: Frame, y: float, towards: int) -> ParallelAxis:
    values = {
        canonical_json(t.outcome.assignment[name]): t.outcome.assignment[name]
        for t in sorted(drawn, key=lambda trial: trial.place)
        if name in t.outcome.assignment
    }
    everywhere = all(name in trial.outcome.assignment for trial in drawn)
    left = frame.left + BAND / 2 + (0 if everywhere else 110)
    across = levels(list(values.values()), left, frame.right - BAND / 2)
    assignments = [trial.outcome.assignment for trial in drawn]
    keys = [canonical_json(each[name]) if name in each else "" for each in assignments]
    places = across.places if everywhere else {**across.places, "": frame.left + 46}
    absent = () if everywhere else ((places[""], ABSENT),)
    room = min(BAND, SHARE_OF_GAP * across.gap)
    crossings = side_by_side(keys, places, room, widest=3.0, towards=towards)
    return ParallelAxis(name, ("log scale",) * across.log, y, (*absent, *across.ticks), tuple(crossings))


def _curve(points: Sequence[svg.Point]) -> str:
    """Return a path that starts below the labels of each axis and bends towards the next axis."""
    steps = []
    for (x, up), (left, down) in pairwise(points):
        y = up + LABELS
        half = svg.pixels((y + down) / 2)
        steps.append(
            f"M{svg.pixels(x)} {svg.pixels(y)}"
            f"C{svg.pixels(x)} {half} {svg.pixels(left)} {half} {svg.pixels(left)} {svg.pixels(down)}"
        )
    return "".join(steps)


def _axis(root: Element, row: ParallelAxis, frame: Frame) -> None:
    part = svg.group(root)
    svg.line(part, "axis", (frame.left, row.y), (frame.right, row.y))
    for x, _ in row.ticks:
        svg.line(part, "axis", (x, row.y - 4), (x, row.y + 4))
    layout.labels(part, row.ticks, frame, row.y + 23)
    for kind, size in layout.SIZES:
        svg.text(
            part, layout.cut_name(row.name, (NAMES - 12) / BOLD, size), (EDGE, row.y + 5), kind=f"head {kind}"
        )
        for number, aside in enumerate(row.asides):
            svg.text(part, layout.cut(aside, NAMES - 12, size), (EDGE, row.y + 28 + number * 23), kind=kind)
