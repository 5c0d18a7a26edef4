"""The figures of a sweep's results, as SVG: any git host shows it, and it follows light and dark itself."""

from generator.results.figures.curves import curves, lines
from generator.results.figures.front import draw_front
from generator.results.figures.intervals import intervals
from generator.results.figures.over_trials import over_trials
from generator.results.figures.parallel import parallel
from generator.results.figures.plot import scored
from generator.results.figures.slices import slices
from generator.results.figures.spent import spent
from generator.results.front import front, valued
from generator.results.importance import Importance
from generator.results.summary import Summary

TRIALS_FILE = "figures/trials.svg"
PARALLEL_FILE = "figures/parallel.svg"
SLICES_FILE = "figures/slices.svg"
CURVES_FILE = "figures/curves.svg"
INTERVALS_FILE = "figures/intervals.svg"
SPENT_FILE = "figures/spent.svg"
FRONT_FILE = "figures/front.svg"
SOMETIMES = frozenset({PARALLEL_FILE, SLICES_FILE, CURVES_FILE, INTERVALS_FILE, SPENT_FILE, FRONT_FILE})
"""What not every summary has."""


def figures(summary: Summary, importance: Importance) -> dict[str, str]:
    """Draw what there is to see, by path: without a parameter that varies, the trials alone."""
    trials = scored(summary)
    drawn = {TRIALS_FILE: over_trials(summary, trials)}
    if importance.shares:
        drawn[PARALLEL_FILE] = parallel(summary, importance, trials)
        drawn[SLICES_FILE] = slices(summary, importance, trials)
    if found := lines(summary):
        drawn[CURVES_FILE] = curves(summary, found)
    if any(one.mean is not None and one.in_spec is not False for one in summary.replicated):
        drawn[INTERVALS_FILE] = intervals(summary)
    if any(batch.lock.round is not None for batch in summary.batches) and trials:
        drawn[SPENT_FILE] = spent(summary)
    if best := front(summary):
        drawn[FRONT_FILE] = draw_front(summary, valued(summary), best)
    return drawn
