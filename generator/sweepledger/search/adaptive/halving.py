"""Successive halving: of each rung, the best trials continue together on the next."""

from collections.abc import Iterator
from functools import partial

from sweepledger.search.adaptive.observations import Suggestion
from sweepledger.search.adaptive.successive_halving import Rungs, promote_best, rung_round, start_trials
from sweepledger.search.configurations import Configuration
from sweepledger.structs.search_block import AdaptiveSearch


def _suggest(
    search: AdaptiveSearch, rungs: Rungs, newcomers: Iterator[Configuration]
) -> Iterator[Suggestion]:
    if not rungs.trials:
        yield from start_trials(rungs, newcomers, search.rounds.size, 0)
        return
    top = max(rungs.trials)
    if top + 1 < len(rungs.amounts):
        yield from promote_best(rungs, rungs.trials[top], top + 1)


next_round = partial(rung_round, suggest=_suggest)
"""Start all trials, or continue the best of the highest rung."""
