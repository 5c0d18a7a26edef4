"""`figures/curves.svg`: the metric of every trial over its steps, as far as the trial came."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generator.results.figures import svg
from generator.results.figures.axis import Axis, number_axis
from generator.results.figures.page import EDGE, WIDTH, Frame, cut_name, direction, head, labels, mark, notes
from generator.results.figures.plot import Plot, gutter, winners
from generator.results.figures.style import CLASSES
from generator.results.spread import Spread
from generator.results.summary import Summary
from generator.structs.record import Outcome, Status
from generator.structs.sweep import Goal

HEIGHT = 290
MOST_LINES = 160
BEST_LINES = 20
MOST_BOLD = 60


@dataclass(frozen=True, slots=True)
class Line:
    """A trial of the newest program with its finite points."""

    outcome: Outcome
    points: tuple[tuple[int, float], ...]

    @property
    def is_pruned(self) -> bool:
        """Tell whether it was ended behind others."""
        return self.outcome.status is Status.PRUNED


def lines(summary: Summary) -> list[Line]:
    """List the trials of which more than one point is known, best first by what they came to."""
    found = []
    for outcome in summary.outcomes:
        record = outcome.record
        if record is not None and summary.is_current(outcome):
            points = tuple((step, value) for step, value in record.curve if value is not None)
            found += [Line(outcome, points)] if len(points) > 1 else []
    sign = -1 if summary.metric.goal is Goal.MAXIMIZE else 1
    return sorted(found, key=lambda one: (one.is_pruned, sign * one.points[-1][1], one.outcome.trial))


def curves(summary: Summary, found: Sequence[Line]) -> str:
    """Draw the curves, the better the later; the same bytes for the same results."""
    drawn = _thinned(found)
    spread = Spread.of([value for line in drawn for _, value in line.points], summary.metric.goal)
    title = f"{summary.metric.name} over the steps"
    told = f"{len(found)} trials reported {summary.metric.name} more than once."
    root = svg.canvas(WIDTH, title=f"{summary.sweep}: {title}", description=told)
    top = head(root, title, list(_entries(summary, drawn))) + 26
    aside = f" ({direction(summary.metric.goal)}{', log scale' if spread.log else ''})"
    name = cut_name(summary.metric.name, WIDTH - 2 * EDGE - svg.text_width(aside))
    svg.text(root, name + aside, (EDGE, top))
    left = gutter(spread, HEIGHT)
    plot = Plot.open(root, summary, spread, Frame(left, top + 12, WIDTH - EDGE - left, HEIGHT))
    steps = [float(step) for line in drawn for step, _ in line.points]
    across = number_axis([min(steps), max(steps)], plot.frame.left, plot.frame.right)
    plot.grid(labelled=True)
    ticks = [(across.at(tick), tick) for tick in across.ticks]
    labels(plot.part, ticks, plot.frame, plot.frame.bottom + 24)
    _draw(plot, across, drawn, found)
    below = plot.frame.bottom + 52
    svg.text(root, "step", (plot.frame.left + plot.frame.width / 2, below), anchor="middle")
    return svg.close(root, notes(root, _remarks(drawn, found, spread), below))


def _entries(summary: Summary, drawn: Sequence[Line]) -> Iterator[tuple[str, str]]:
    if any(line.outcome.trial in winners(summary) for line in drawn):
        yield "chosen", "best"
    yield from ((f"c{CLASSES - 1}", "best fifth"), ("c2", "middle"), ("c0", "worst fifth"))
    if any(line.is_pruned for line in drawn):
        yield "cross", "ended early"


def _thinned(found: Sequence[Line]) -> list[Line]:
    """Keep the best, and of the others every n-th by rank."""
    if len(found) <= MOST_LINES:
        return list(found)
    return [*found[:BEST_LINES], *found[BEST_LINES + _stride(found) - 1 :: _stride(found)]]


def _stride(found: Sequence[Line]) -> int:
    return -(-(len(found) - BEST_LINES) // (MOST_LINES - BEST_LINES))


def _draw(plot: Plot, across: Axis, drawn: Sequence[Line], found: Sequence[Line]) -> None:
    part = svg.group(plot.part, "fine" if len(drawn) > MOST_BOLD else "")
    best = winners(plot.summary)
    ranks = {line.outcome.trial: rank for rank, line in enumerate(found)}
    for line in reversed(drawn):
        places = [(across.at(step), _height(plot, value)) for step, value in line.points]
        fifth = CLASSES - 1 - ranks[line.outcome.trial] * CLASSES // len(found)
        kind = "chosen" if line.outcome.trial in best else f"line c{fifth}"
        svg.path(part, kind, [("L" if number else "M", *place) for number, place in enumerate(places)])
        if line.is_pruned:
            mark(part, "cross", places[-1])


def _height(plot: Plot, value: float) -> float:
    """Place a value; one beyond the spread at its end."""
    return plot.axis.at(min(max(value, plot.spread.low), plot.spread.high))


def _remarks(drawn: Sequence[Line], found: Sequence[Line], spread: Spread) -> Iterator[str]:
    if len(drawn) < len(found):
        yield f"{len(drawn)} of {len(found)} trials are drawn: the best {BEST_LINES},"
        yield f"and by rank one in {_stride(found)} of the others."
    if spread.beyond:
        yield f"{spread.beyond} points worse than the axis lie at its end."
