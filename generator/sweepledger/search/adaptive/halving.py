"""Successive halving: of each rung, the best trials continue together on the next."""

from collections.abc import Iterator

from sweepledger.search.adaptive.observations import KnownTrials, Round, SearchEnd, Suggestion
from sweepledger.search.adaptive.successive_halving import Rungs, promote_best, rung_round, start_trials
from sweepledger.search.configurations import Configuration
from sweepledger.structs.search_block import AdaptiveSearch
from sweepledger.structs.sweep import Sweep


def next_round(sweep: Sweep, search: AdaptiveSearch, trials: KnownTrials, number: int) -> Round | SearchEnd:
    """Start all trials, or continue the best of the highest rung."""
    return rung_round(sweep, search, trials, number, _suggest)


def _suggest(
    search: AdaptiveSearch, rungs: Rungs, newcomers: Iterator[Configuration]
) -> Iterator[Suggestion]:
    if not rungs.trials:
        yield from start_trials(rungs, newcomers, search.rounds.size, 0)
        return
    top = max(rungs.trials)
    if top + 1 < len(rungs.amounts):
        yield from promote_best(rungs, rungs.trials[top], top + 1)
