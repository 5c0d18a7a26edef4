"""Upper bounds on the rounds and trials that a search may still request."""

from collections.abc import Sequence
from dataclasses import replace

from sweepledger.plan.upper_bounds import RoundBounds, round_bounds
from sweepledger.repo.batches import StoredBatch
from sweepledger.search import limits
from sweepledger.search.adaptive import Observation, Round, SearchEnd
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.search.expansion import Expansion, explore
from sweepledger.structs.combinations import MAX_TRIALS
from sweepledger.structs.program import Program
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import digest

MOST_ROUNDS = 999
"""A sweep has no more batches."""


def remaining_bounds(
    sweep: Sweep, merged: Sequence[StoredBatch], program: Program, expansion: Expansion | None = None
) -> RoundBounds:
    """Return the bounds of what a sweep with rounds may add to its merged batches with a program.

    A static sweep is expanded unless its expansion is known.
    """
    current = [batch for batch in merged if batch.lock.program == program]
    trials = len({row.trial for batch in current for row in batch.rows})
    rounds = max((batch.lock.round or 0 for batch in current), default=0)
    return _bounds_after(sweep, trials, rounds, expansion)


def total_bounds(sweep: Sweep, expansion: Expansion | None = None) -> RoundBounds:
    """Return the bounds of a whole sweep with rounds; a static one is expanded unless its expansion is known."""
    return _bounds_after(sweep, 0, 0, expansion)


def _bounds_after(sweep: Sweep, trials: int, rounds: int, expansion: Expansion | None) -> RoundBounds:
    search = sweep.search
    if search is None:
        expanded = expansion or explore(sweep)
        count = len(expanded.configurations) * sweep.replicates if isinstance(expanded, Expansion) else 0
        return round_bounds(sweep, trials=trials, rounds=rounds, max_trials=count)
    if search.method.is_sampler:
        affordable = limits.affordable_trials(sweep, MAX_TRIALS)
        most = affordable if affordable < MAX_TRIALS else None
        return round_bounds(sweep, trials=trials, rounds=rounds, max_trials=most)
    unlimited = replace(search, rounds=replace(search.rounds, patience=None))
    without_target = replace(sweep, design=unlimited, metric=replace(sweep.metric, target=None))
    observations: list[Observation] = []
    sizes: list[int] = []
    for number in range(1, MOST_ROUNDS + 1):
        proposal = next_round(without_target, observations, number=number)
        if isinstance(proposal, SearchEnd):
            break
        new = list(_successful_observations(without_target, proposal))
        sizes.append(len(new))
        observations += new
    left = max(0, sum(sizes) - trials)
    return RoundBounds(max(sizes, default=0), left, max(0, len(sizes) - rounds), search.rounds.ahead)


def _successful_observations(sweep: Sweep, proposal: Round) -> list[Observation]:
    values = tuple(0.0 for _ in sweep.metrics)
    return [
        Observation(
            suggestion.configuration,
            replicate,
            Status.OK,
            values,
            proposal.number,
            digest([suggestion.configuration, replicate]),
            suggestion.parent,
        )
        for suggestion in proposal.suggestions
        for replicate in range(sweep.replicates)
    ]
