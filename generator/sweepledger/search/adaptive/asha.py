"""ASHA: trials continue as soon as they are among the best of their rung so far."""

from collections.abc import Iterator
from functools import partial

from sweepledger.search.adaptive.observations import Suggestion
from sweepledger.search.adaptive.successive_halving import Rungs, rung_round, start_trials
from sweepledger.search.configurations import Configuration
from sweepledger.structs.search_block import AdaptiveSearch


def _suggest(
    search: AdaptiveSearch, rungs: Rungs, newcomers: Iterator[Configuration]
) -> Iterator[Suggestion]:
    """Promote the trials that are among the best of their rung so far, from the highest rung; then start new ones.

    This is `get_job` of Li et al. (2020), algorithm 2, once for each trial of the round: a rung consists of the
    trials that have ended on it, and a failed one ranks last.
    """
    free = search.rounds.size
    for rung in range(len(rungs.amounts) - 2, -1, -1):
        trials = rungs.trials.get(rung, ())
        best = rungs.ranked(trials)[: len(trials) // rungs.resource.eta]
        promoted = {trial.parent for at in (rungs.trials, rungs.pending) for trial in at.get(rung + 1, ())}
        for trial in best:
            if trial.id not in promoted and free:
                free -= 1
                yield rungs.promote(trial, rung + 1)
    yield from start_trials(rungs, newcomers, free, 0)


next_round = partial(rung_round, suggest=_suggest)
"""Continue trials that are among the best of their rung, and start new ones."""
