"""`figures/trials.svg`, `figures/spent.svg`: the objective and its best value, over trials and over time."""

import itertools
from collections.abc import Iterator, Sequence
from itertools import accumulate

from sweepledger.results.display import HOUR, MINUTE
from sweepledger.results.figures import svg
from sweepledger.results.figures.axis import Axis
from sweepledger.results.figures.layout import labels, mark, open_figure
from sweepledger.results.figures.plot import (
    MOST_DOTS,
    Plot,
    PlottedTrial,
    beyond_axis,
    darkening,
    legend,
    remarks,
)
from sweepledger.results.objective_scale import ObjectiveScale
from sweepledger.results.summary import Summary, best_result
from sweepledger.structs.record import Status, TrialResult

TIME_HEIGHT = 220
LONG = 2 * HOUR
"""From here on, hours are easier to read than minutes."""
MOST_NUMBERS = 10


def draw_over_trials(summary: Summary, drawn: Sequence[PlottedTrial]) -> str:
    """Return the figure of every trial's objective, in the order of the summary."""
    # The scale covers the trials of all programs, because all of them are drawn.
    spread = ObjectiveScale.of([trial.objective for trial in drawn], summary.metric.goal)
    tiled = len(drawn) > MOST_DOTS
    done = f"{summary.counts[Status.OK]} of {len(summary.outcomes)} trials ended ok, {best_result(summary)}."
    entries = list(legend(summary, drawn, spread, tiled=tiled, lost=len(drawn) < len(summary.outcomes)))
    line = [("record", "best so far")] if any(trial.ranked for trial in drawn) else []
    root, top = open_figure(
        summary.sweep,
        f"{summary.metric.name} over the trials",
        description=done,
        legend=[*entries[:1], *line, *entries[1:]],
    )
    plot = Plot.across_page(root, summary, spread, summary.metric, top=top)
    steps = _fill_trials(plot, drawn, tiled=tiled)
    several = ", batch by batch" if len(summary.batches) > 1 else ""
    caption = f"trial, in the order of the summary{several}"
    return plot.close(root, caption, remarks(summary, drawn, spread, steps))


def _fill_trials(plot: Plot, drawn: Sequence[PlottedTrial], *, tiled: bool) -> Sequence[int]:
    """Draw all marks, and return the steps at which tiles get darker; empty without tiles."""
    summary, frame = plot.summary, plot.frame
    total = len(summary.outcomes)
    pad = 0.5 + total / 60
    across = Axis(1 - pad, total + pad, frame.left, frame.right, log=False, ticks=())
    for place, (before, after) in enumerate(itertools.pairwise(summary.outcomes), start=1):
        if before.batch != after.batch:
            x = across.at(place + 0.5)
            svg.line(plot.part, "seam", (x, frame.top), (x, frame.bottom))
    # The first number, and multiples of a round step.
    round_steps = (factor * 10**power for power in range(9) for factor in (1, 2, 5))
    step = (
        1 if total <= 2 * MOST_NUMBERS else next(each for each in round_steps if total / each <= MOST_NUMBERS)
    )
    ticks = [(across.at(number), float(number)) for number in sorted({1, *range(step, total + 1, step)})]
    labels(plot.part, ticks, frame, frame.bottom + 24)
    if drawn:
        plot.grid(labelled=True)
    else:
        middle = (frame.left + frame.width / 2, frame.top + frame.height / 2)
        svg.text(plot.part, "no trial has ended ok", middle, anchor="middle")
    marks = plot.marks(((across.at(trial.place), trial) for trial in drawn), tiled=tiled)
    steps = darkening(marks.densest) if tiled else ()
    plot.trials(marks, steps)
    done = {trial.place for trial in drawn}
    plot.crosses(across.at(place) for place in range(1, total + 1) if place not in done)
    svg.path(plot.part, "record", _record(plot, across, drawn))
    plot.winner(marks)
    return steps


def _record(plot: Plot, across: Axis, drawn: Sequence[PlottedTrial]) -> Iterator[tuple[str, float, float]]:
    """Yield the path of the best value so far, over the eligible trials."""
    summary, height = plot.summary, None
    so_far: PlottedTrial | None = None
    for trial in drawn:
        if not trial.ranked or not plot.spread.holds(trial.objective):
            continue
        if so_far is not None and not summary.metric.better(trial.objective, so_far.objective):
            continue
        x, y = across.at(trial.place), plot.axis.at(trial.objective)
        yield ("M", x, y) if height is None else ("L", x, height)
        yield ("L", x, y)
        so_far, height = trial, y
    if height is not None:
        yield ("L", across.at(len(summary.outcomes)), height)


def draw_over_time(summary: Summary) -> str:
    """Return the figure of the best value so far over the computing time, in the order in which trials ended."""
    ran = [one for one in summary.outcomes if one.record is not None and summary.is_current(one)]
    ran.sort(key=lambda one: (one.record.finished if one.record else "", one.trial))
    costs = list(accumulate(one.record.seconds for one in ran if one.record is not None))
    values = [value for one in ran if (value := one.metric(summary.metric.name)) is not None]
    spread = ObjectiveScale.of(values, summary.metric.goal)
    unit, name = (HOUR, "hours") if costs and costs[-1] >= LONG else (MINUTE, "minutes")
    description = f"{len(ran)} trials took {costs[-1] / unit if costs else 0:.3g} {name} of computing."
    root, top = open_figure(
        summary.sweep,
        f"best {summary.metric.name} over the computing time",
        description=description,
        legend=[("trial", "trial, at its end"), ("record", "best so far")],
    )
    plot = Plot.across_page(root, summary, spread, summary.metric, top=top, height=TIME_HEIGHT)
    plot.grid(labelled=True)
    across = plot.numbers([0.0, (costs[-1] if costs else 0.0) / unit])
    _fill_time(plot, across, [(cost / unit, one) for cost, one in zip(costs, ran, strict=True)])
    return plot.close(root, f"{name} of computing time, all trials together", beyond_axis(spread))


def _fill_time(plot: Plot, across: Axis, placed: Sequence[tuple[float, TrialResult]]) -> None:
    steps: list[tuple[str, float, float]] = []
    best: float | None = None
    for cost, one in placed:
        value = one.metric(plot.summary.metric.name)
        if value is None or not plot.spread.holds(value):
            continue
        x, y = across.at(cost), plot.axis.at(value)
        mark(plot.part, "trial", (x, y))
        if plot.summary.is_eligible(one) and (best is None or plot.summary.metric.better(value, best)):
            steps += [("L", x, steps[-1][2])] if steps else []
            steps.append(("L" if steps else "M", x, y))
            best = value
    if steps:
        steps.append(("L", across.at(placed[-1][0]), steps[-1][2]))
    svg.path(plot.part, "record", steps)
