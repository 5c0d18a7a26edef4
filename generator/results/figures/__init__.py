"""The figures of a sweep's results, as SVG: any git host shows it, and it follows light and dark itself."""

from generator.results.figures.over_trials import over_trials
from generator.results.figures.parallel import parallel
from generator.results.figures.plot import scored
from generator.results.figures.slices import slices
from generator.results.importance import Importance
from generator.results.summary import Summary

TRIALS_FILE = "figures/trials.svg"
PARALLEL_FILE = "figures/parallel.svg"
SLICES_FILE = "figures/slices.svg"


def figures(summary: Summary, importance: Importance) -> dict[str, str]:
    """Draw what there is to see, by path: without a parameter that varies, the trials alone."""
    trials = scored(summary)
    drawn = {TRIALS_FILE: over_trials(summary, trials)}
    if importance.shares:
        drawn[PARALLEL_FILE] = parallel(summary, importance, trials)
        drawn[SLICES_FILE] = slices(summary, importance, trials)
    return drawn
