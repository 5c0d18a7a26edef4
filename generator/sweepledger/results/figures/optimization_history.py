"""`figures/trials.svg`: the objective over the trials in their order, and the best so far."""

import itertools
from collections.abc import Iterator, Sequence

from generator.results.figures import svg
from generator.results.figures.axis import Axis
from generator.results.figures.page import EDGE, WIDTH, Frame, cut_name, direction, head, labels, notes
from generator.results.figures.plot import MOST_DOTS, Plot, Scored, darkening, gutter, legend, remarks
from generator.results.message import best
from generator.results.spread import Spread
from generator.results.summary import Summary
from generator.structs.record import Status

HEIGHT = 290
MOST_NUMBERS = 10


def over_trials(summary: Summary, drawn: Sequence[Scored]) -> str:
    """Draw the objective of every trial: the same bytes for the same results, anywhere."""
    # Of all programs: what is of an older one may lie where the newest has none.
    spread = Spread.of([trial.objective for trial in drawn], summary.metric.goal)
    tiled = len(drawn) > MOST_DOTS
    title = f"{summary.metric.name} over the trials"
    done = f"{summary.counts[Status.OK]} of {len(summary.outcomes)} trials ended ok, {best(summary)}."
    root = svg.canvas(WIDTH, title=f"{summary.sweep}: {title}", description=done)
    entries = list(legend(summary, drawn, spread, tiled=tiled, lost=len(drawn) < len(summary.outcomes)))
    line = [("record", "best so far")] if any(trial.ranked for trial in drawn) else []
    top = head(root, title, [*entries[:1], *line, *entries[1:]])
    scale = ", log scale" if spread.log else ""
    top += 26
    aside = f" ({direction(summary.metric.goal)}{scale})"
    svg.text(
        root, cut_name(summary.metric.name, WIDTH - 2 * EDGE - svg.text_width(aside)) + aside, (EDGE, top)
    )
    left = gutter(spread, HEIGHT) if drawn else EDGE
    plot = Plot.open(root, summary, spread, Frame(left, top + 12, WIDTH - EDGE - left, HEIGHT))
    steps = _fill(plot, drawn, tiled=tiled)
    below = plot.frame.bottom + 52
    svg.text(root, _counted(summary), (plot.frame.left + plot.frame.width / 2, below), anchor="middle")
    return svg.close(root, notes(root, remarks(summary, drawn, spread, steps), below))


def _counted(summary: Summary) -> str:
    several = ", batch by batch" if len(summary.batches) > 1 else ""
    return f"trial, in the order of the table{several}"


def _fill(plot: Plot, drawn: Sequence[Scored], *, tiled: bool) -> Sequence[int]:
    """Draw all marks; tell the steps at which tiles get darker, if there are tiles."""
    summary, frame = plot.summary, plot.frame
    total = len(summary.outcomes)
    pad = 0.5 + total / 60
    across = Axis(1 - pad, total + pad, frame.left, frame.right, log=False, ticks=())
    for x in _seams(summary, across):
        svg.line(plot.part, "seam", (x, frame.top), (x, frame.bottom))
    ticks = [(across.at(number), float(number)) for number in _numbers(total)]
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


def _numbers(total: int) -> Iterator[int]:
    """Count in steps that give a readable axis, the first trial included."""
    steps = (factor * 10**power for power in range(9) for factor in (1, 2, 5))
    step = 1 if total <= 2 * MOST_NUMBERS else next(step for step in steps if total / step <= MOST_NUMBERS)
    yield from sorted({1, *range(step, total + 1, step)})


def _seams(summary: Summary, across: Axis) -> Iterator[float]:
    batches = [outcome.batch for outcome in summary.outcomes]
    for place, (before, after) in enumerate(itertools.pairwise(batches), start=1):
        if before != after:
            yield across.at(place + 0.5)


def _record(plot: Plot, across: Axis, drawn: Sequence[Scored]) -> Iterator[tuple[str, float, float]]:
    """Draw the best so far as stairs, over the trials that may win."""
    summary, height = plot.summary, None
    so_far: Scored | None = None
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
