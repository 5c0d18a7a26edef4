"""All figures of a sweep's report: their file names, and when each of them is drawn."""

from sweepledger.results.figures.intermediate_values import draw_intermediate_values, trial_curves
from sweepledger.results.figures.intervals import draw_intervals
from sweepledger.results.figures.optimization_history import draw_over_time, draw_over_trials
from sweepledger.results.figures.parallel_coordinate import draw_parallel_coordinate
from sweepledger.results.figures.pareto_front import draw_pareto_front
from sweepledger.results.figures.plot import plotted_trials
from sweepledger.results.figures.slices import draw_slices
from sweepledger.results.importance import Importance
from sweepledger.results.summary import Summary, pareto_front, trials_with_all_metrics

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
    """Return the figures of a summary by path; only that of the trials if no parameter varies."""
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
        drawn[FRONT_FILE] = draw_pareto_front(summary, trials_with_all_metrics(summary), front)
    return drawn
