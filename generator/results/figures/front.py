"""`figures/front.svg`: of several metrics the first two, and the trials that none beats in all."""

from collections.abc import Iterator, Sequence

from generator.results.figures import svg
from generator.results.figures.axis import number_axis
from generator.results.figures.page import EDGE, WIDTH, Frame, cut_name, direction, head, labels, mark, notes
from generator.results.figures.plot import Plot, gutter
from generator.results.front import Valued, metrics
from generator.results.spread import Spread
from generator.results.summary import Summary

HEIGHT = 290


def draw_front(summary: Summary, found: Sequence[Valued], best: Sequence[Valued]) -> str:
    """Draw every trial by its first two metrics, and ring the front."""
    first, second, *others = metrics(summary)
    spread = Spread.of([values[0] for _, values in found], first.goal)
    title = f"{first.name} against {second.name}"
    told = f"{len(best)} of {len(found)} trials are beaten by no other in all metrics."
    root = svg.canvas(WIDTH, title=f"{summary.sweep}: {title}", description=told)
    top = head(root, title, [("best", "front"), ("trial", "trial")]) + 26
    aside = f" ({direction(first.goal)}{', log scale' if spread.log else ''})"
    name = cut_name(first.name, WIDTH - 2 * EDGE - svg.text_width(aside))
    svg.text(root, name + aside, (EDGE, top))
    left = gutter(spread, HEIGHT)
    plot = Plot.open(root, summary, spread, Frame(left, top + 12, WIDTH - EDGE - left, HEIGHT))
    plot.grid(labelled=True)
    across = number_axis([values[1] for _, values in found], plot.frame.left, plot.frame.right)
    labels(plot.part, [(across.at(tick), tick) for tick in across.ticks], plot.frame, plot.frame.bottom + 24)
    ringed = {one.trial for one, _ in best}
    for one, values in sorted(found, key=lambda each: each[0].trial in ringed):
        if spread.holds(values[0]):
            at = across.at(values[1]), plot.axis.at(values[0])
            mark(plot.part, "best" if one.trial in ringed else "trial", at, one.trial)
    below = plot.frame.bottom + 52
    aside = f" ({direction(second.goal)})"
    name = cut_name(second.name, WIDTH - 2 * EDGE - svg.text_width(aside))
    svg.text(root, name + aside, (WIDTH - EDGE, below), anchor="end")
    return svg.close(root, notes(root, _remarks(spread, len(others)), below))


def _remarks(spread: Spread, others: int) -> Iterator[str]:
    if others:
        yield f"The front is that of all {others + 2} metrics, of which two are shown."
    if spread.beyond:
        yield f"Worse than the axis, and not drawn: {spread.beyond} trials."
