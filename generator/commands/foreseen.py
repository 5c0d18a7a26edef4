"""What the rounds to come of a search may ask for, played where a formula will not do."""

from collections.abc import Sequence
from dataclasses import replace

from generator.plan.ahead import Ahead, ahead
from generator.repo.batches import StoredBatch
from generator.search.adaptive import Finished, Observation, Round, next_round
from generator.search.limits import running
from generator.structs.adaptive import Search
from generator.structs.counting import MOST_TRIALS
from generator.structs.program import Program
from generator.structs.record import Status
from generator.structs.sweep import Sweep
from generator.structs.values import digest

MOST_ROUNDS = 999
"""A sweep has no more batches."""


def foreseen(sweep: Sweep, search: Search, old: Sequence[StoredBatch], program: Program) -> Ahead:
    """Bound what a search may ask for beside its standing batches under a program."""
    current = [batch for batch in old if batch.lock.program == program]
    trials = len({row.trial for batch in current for row in batch.rows})
    rounds = max((batch.lock.round or 0 for batch in current), default=0)
    return _beside(sweep, search, trials, rounds)


def whole(sweep: Sweep, search: Search) -> Ahead:
    """Bound all that a search may ask for."""
    return _beside(sweep, search, 0, 0)


def _beside(sweep: Sweep, search: Search, trials: int, rounds: int) -> Ahead:
    if search.method.is_sampler:
        bearable = running.affordable(sweep, MOST_TRIALS)
        most = bearable if bearable < MOST_TRIALS else None
        return ahead(sweep, search, trials=trials, rounds=rounds, most=most)
    sizes = _played(sweep, search)
    left = max(0, sum(sizes) - trials)
    return Ahead(max(sizes, default=0), left, max(0, len(sizes) - rounds))


def _played(sweep: Sweep, search: Search) -> list[int]:
    """Play a search whose every trial is fine: its rounds differ in size, and no record has a say in that."""
    patient = replace(search, rounds=replace(search.rounds, patience=None))
    untold = replace(sweep, blocks=(patient,), metric=replace(sweep.metric, target=None))
    seen: list[Observation] = []
    sizes: list[int] = []
    for number in range(1, MOST_ROUNDS + 1):
        found = next_round(untold, seen, number=number)
        if isinstance(found, Finished):
            break
        new = list(_fine(untold, found))
        sizes.append(len(new))
        seen += new
    return sizes


def _fine(sweep: Sweep, found: Round) -> list[Observation]:
    values = tuple(0.0 for _ in sweep.metrics)
    return [
        Observation(
            one.assignment,
            replicate,
            Status.OK,
            values,
            found.number,
            digest([one.assignment, replicate]),
            one.parent,
        )
        for one in found.suggestions
        for replicate in range(sweep.replicates)
    ]
