"""Hyperband: brackets of successive halving, one from each rung; plain halving has one, from the lowest rung."""

from collections.abc import Iterator
from functools import partial

from sweepledger.search.adaptive.observations import Suggestion
from sweepledger.search.adaptive.successive_halving import Rungs, rung_round, start_trials
from sweepledger.search.configurations import Configuration
from sweepledger.structs.search_block import AdaptiveSearch


def _suggest(
    search: AdaptiveSearch, rungs: Rungs, newcomers: Iterator[Configuration]
) -> Iterator[Suggestion]:
    """Start all brackets, or continue each on its next rung; a trial's bracket is the rung of its first ancestor."""
    size = search.rounds.size
    starts = rungs.resource.brackets(size) if search.method.starts_brackets else ((0, size),)
    if not rungs.trials:
        for rung, count in starts:
            yield from start_trials(rungs, newcomers, count, rung)
        return
    brackets: dict[str, int] = {}
    for rung in sorted(rungs.trials):
        for trial in rungs.trials[rung]:
            brackets[trial.id] = brackets.get(trial.parent or "", rung)
    for bracket, _ in starts:
        members = {
            rung: [trial for trial in trials if len(starts) == 1 or brackets[trial.id] == bracket]
            for rung, trials in rungs.trials.items()
        }
        reached = max((rung for rung, trials in members.items() if trials), default=None)
        if reached is not None and reached + 1 < len(rungs.amounts):
            promoted = max(1, len(members[reached]) // rungs.resource.eta)
            for trial in rungs.ranked(members[reached])[:promoted]:
                yield rungs.promote(trial, reached + 1)


next_round = partial(rung_round, suggest=_suggest)
"""Start all brackets, or continue each on its next rung."""
