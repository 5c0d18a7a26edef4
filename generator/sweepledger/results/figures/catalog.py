"""All figures of a sweep's report: their file names, and the conditions for drawing them."""

from collections.abc import Sequence

from sweepledger.results.figures import svg
from sweepledger.results.figures.intervals import draw_intervals
from sweepledger.results.figures.layout import EDGE, WIDTH, close_figure, mark, metric_label, open_figure
from sweepledger.results.figures.lines import draw_intermediate_values, draw_parallel_coordinate, trial_curves
from sweepledger.results.figures.optimization_history import draw_over_time, draw_over_trials
from sweepledger.results.figures.plot import Plot, beyond_axis, plotted_trials
from sweepledger.results.figures.slices import draw_slices
from sweepledger.results.importance import Importance
from sweepledger.results.objective_scale import ObjectiveScale
from sweepledger.results.summary import Summary, TrialMetrics, pareto_front
from sweepledger.structs.record import with_all_metrics


def draw_pareto_front(summary: Summary, trials: Sequence[TrialMetrics], front: Sequence[TrialMetrics]) -> str:
    """Return the figure of all trials by their first two metrics; the front has rings."""
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
    return close_figure(root, [*([front_of] if others else []), *beyond_axis(spread)], below)


FIGURES = "figures/"
TRIALS_FILE = f"{FIGURES}trials.svg"
PARALLEL_FILE = f"{FIGURES}parallel.svg"
SLICES_FILE = f"{FIGURES}slices.svg"
CURVES_FILE = f"{FIGURES}curves.svg"
INTERVALS_FILE = f"{FIGURES}intervals.svg"
SPENT_FILE = f"{FIGURES}spent.svg"
FRONT_FILE = f"{FIGURES}front.svg"
OPTIONAL_FILES = frozenset({PARALLEL_FILE, SLICES_FILE, CURVES_FILE, INTERVALS_FILE, SPENT_FILE, FRONT_FILE})
"""Figures that not every summary has."""


def draw_figures(summary: Summary, importance: Importance) -> dict[str, str]:
    """Return the figures of a summary by path; only the figure of the trials if no parameter varies."""
    trials = plotted_trials(summary)
    drawn = {TRIALS_FILE: draw_over_trials(summary, trials)}
    if importance.parameters:
        drawn[PARALLEL_FILE] = draw_parallel_coordinate(summary, importance, trials)
        drawn[SLICES_FILE] = draw_slices(summary, importance, trials)
    if curves := trial_curves(summary):
        drawn[CURVES_FILE] = draw_intermediate_values(summary, curves)
    if any(each.is_ranked for each in summary.replicated):
        drawn[INTERVALS_FILE] = draw_intervals(summary)
    if any(batch.lock.round is not None for batch in summary.batches) and trials:
        drawn[SPENT_FILE] = draw_over_time(summary)
    if front := pareto_front(summary):
        complete = with_all_metrics(filter(summary.is_eligible, summary.outcomes), summary.lock.metrics)
        drawn[FRONT_FILE] = draw_pareto_front(summary, complete, front)
    return drawn
