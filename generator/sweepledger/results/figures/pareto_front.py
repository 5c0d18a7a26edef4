"""`figures/front.svg`: all trials by the first two metrics, with the Pareto front."""

from collections.abc import Sequence

from sweepledger.results.figures import svg
from sweepledger.results.figures.page import EDGE, WIDTH, mark, metric_label, notes, open_figure
from sweepledger.results.figures.plot import Plot, beyond_axis
from sweepledger.results.objective_scale import ObjectiveScale
from sweepledger.results.summary import Summary, TrialMetrics


def draw_pareto_front(summary: Summary, trials: Sequence[TrialMetrics], front: Sequence[TrialMetrics]) -> str:
    """Return the figure of every trial by its first two metrics; the front has rings."""
    first, second, *others = summary.lock.metrics
    spread = ObjectiveScale.of([values[0] for _, values in trials], first.goal)
    root, top = open_figure(
        summary.sweep,
        f"{first.name} and {second.name}",
        description=f"{len(front)} of {len(trials)} trials are on the Pareto front.",
        legend=[("best", "Pareto front"), ("trial", "trial")],
    )
    plot = Plot.across_page(root, summary, spread, first, top=top)
    plot.grid(labelled=True)
    across = plot.numbers([values[1] for _, values in trials])
    ringed = {one.trial for one, _ in front}
    for one, values in sorted(trials, key=lambda each: each[0].trial in ringed):
        if spread.holds(values[0]):
            at = across.at(values[1]), plot.axis.at(values[0])
            mark(plot.part, "best" if one.trial in ringed else "trial", at, one.trial)
    below = plot.frame.bottom + 52
    svg.text(root, metric_label(second), (WIDTH - EDGE, below), anchor="end")
    front_of = f"The front is that of all {len(others) + 2} metrics; the figure shows the first two."
    return svg.close(root, notes(root, [*([front_of] if others else []), *beyond_axis(spread)], below))
