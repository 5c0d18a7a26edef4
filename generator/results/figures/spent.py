"""`figures/spent.svg`: the best so far over the hours that trials took, one after the other."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from generator.results.figures import svg
from generator.results.figures.axis import Axis, number_axis
from generator.results.figures.page import EDGE, WIDTH, Frame, cut_name, direction, head, labels, mark, notes
from generator.results.figures.plot import Plot, gutter
from generator.results.spread import Spread
from generator.results.summary import Summary
from generator.structs.record import Outcome

HEIGHT = 220
HOUR = 3600
MINUTE = 60
LONG = 2 * HOUR
"""From here on hours are easier to read than minutes."""


def spent(summary: Summary) -> str:
    """Draw the best so far over what was spent on all attempts that count, in the order of their ends."""
    ran = sorted(_ran(summary), key=lambda one: (one.record.finished if one.record else "", one.trial))
    costs = list(accumulate(one.record.seconds for one in ran if one.record is not None))
    found = [value for one in ran if (value := one.metric(summary.metric.name)) is not None]
    spread = Spread.of(found, summary.metric.goal)
    unit, name = (HOUR, "hours") if costs and costs[-1] >= LONG else (MINUTE, "minutes")
    title = f"best {summary.metric.name} over the {name} spent"
    told = f"{len(ran)} trials took {costs[-1] / unit if costs else 0:.3g} {name} of computing."
    root = svg.canvas(WIDTH, title=f"{summary.sweep}: {title}", description=told)
    top = head(root, title, [("trial", "trial, at its end"), ("record", "best so far")]) + 26
    aside = f" ({direction(summary.metric.goal)}{', log scale' if spread.log else ''})"
    metric = cut_name(summary.metric.name, WIDTH - 2 * EDGE - svg.text_width(aside))
    svg.text(root, metric + aside, (EDGE, top))
    left = gutter(spread, HEIGHT)
    plot = Plot.open(root, summary, spread, Frame(left, top + 12, WIDTH - EDGE - left, HEIGHT))
    plot.grid(labelled=True)
    across = number_axis([0.0, (costs[-1] if costs else 0.0) / unit], plot.frame.left, plot.frame.right)
    labels(plot.part, [(across.at(tick), tick) for tick in across.ticks], plot.frame, plot.frame.bottom + 24)
    _fill(plot, across, [(cost / unit, one) for cost, one in zip(costs, ran, strict=True)])
    below = plot.frame.bottom + 52
    middle = (plot.frame.left + plot.frame.width / 2, below)
    svg.text(root, f"{name} of computing, all trials together", middle, anchor="middle")
    return svg.close(root, notes(root, _remarks(spread), below))


def _ran(summary: Summary) -> Iterator[Outcome]:
    return (one for one in summary.outcomes if one.record is not None and summary.is_current(one))


def _fill(plot: Plot, across: Axis, placed: Sequence[tuple[float, Outcome]]) -> None:
    steps: list[tuple[str, float, float]] = []
    best: float | None = None
    for cost, one in placed:
        value = one.metric(plot.summary.metric.name)
        if value is None or not plot.spread.holds(value):
            continue
        x, y = across.at(cost), plot.axis.at(value)
        mark(plot.part, "trial", (x, y))
        if plot.summary.may_win(one) and (best is None or plot.summary.metric.better(value, best)):
            steps += [("L", x, steps[-1][2])] if steps else []
            steps.append(("L" if steps else "M", x, y))
            best = value
    if steps:
        steps.append(("L", across.at(placed[-1][0]), steps[-1][2]))
    svg.path(plot.part, "record", steps)


def _remarks(spread: Spread) -> Iterator[str]:
    if spread.beyond:
        yield f"Worse than the axis, and not drawn: {spread.beyond} trials."
