"""Waves: the rounds into which a static sweep with early stopping is divided, if that costs little time.

Decided once, before the first batch. From then on the first batch says it, so no later record changes a sweep.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sweepledger.commands.repository.costs import Timing
from sweepledger.commands.rounds.evidence import as_begun
from sweepledger.plan import DurationSource, PlannedTrials, forecast
from sweepledger.problems import Problem
from sweepledger.repo.batches import StoredBatch
from sweepledger.search import Configuration
from sweepledger.structs.program import Program
from sweepledger.structs.search_block import Rounds
from sweepledger.structs.sweep import Sweep

MOST_LONGER = 0.1
"""How much longer the sweep may take, as a share of its time in one batch."""
SMALLEST_WAVE = 8
"""Configurations: with fewer, rules stop good trials too often (docs/performance.md)."""
MOST_WAVES = 8


@dataclass(frozen=True, slots=True)
class Waves:
    """How a sweep is divided."""

    rounds: Rounds
    count: int
    longer: float
    """By how much it takes longer, as a share; without trials that end early."""
    source: DurationSource
    """What the forecast is based on."""

    @property
    def text(self) -> str:
        """The division, for reviewers."""
        known = "" if self.source is DurationSource.RECORDS else ", by expected_minutes alone"
        return (
            f"{self.count} waves of at most {self.rounds.size} configurations, so that early_terminate compares "
            f"later trials with earlier ones: {100 * max(0.0, self.longer):.0f} % longer if none ends early{known}; "
            "rounds: none requests all at once"
        )


def relevant_warnings(warnings: Iterable[Problem], sweep: Sweep) -> tuple[Problem, ...]:
    """Return the warnings about a spec, except the one that proposes the rounds which a sweep has as waves."""
    return tuple(one for one in warnings if sweep.rounds is None or one.code != "early-stop-alone")


def as_proposed(sweep: Sweep, configurations: int, proposed: Iterable[StoredBatch]) -> Sweep:
    """Return a sweep in the waves of batches that are not merged, if the generator could have chosen these waves.

    A lock that nobody has approved decides nothing else: neither other waves nor the method of `auto`.
    """
    begun = as_begun(sweep, proposed) if sweep.search is None else sweep
    possible = {Rounds(_size(configurations, count)) for count in _counts(configurations)}
    return begun if begun.static_rounds in possible else sweep


def _counts(configurations: int) -> range:
    """Return into how many waves so many configurations may be divided, the most first."""
    return range(min(MOST_WAVES, configurations // SMALLEST_WAVE), 1, -1)


def _size(configurations: int, count: int) -> int:
    return -(-configurations // count)


def choose_waves(
    sweep: Sweep, configurations: Sequence[Configuration], program: Program, timing: Timing
) -> Waves | None:
    """Return the most waves that are forecast to take little longer than one batch; None if none are."""
    if not sweep.may_have_waves:
        return None
    trials = [one for one in configurations for _ in range(sweep.replicates)]
    workload = PlannedTrials(sweep.run, trials, sweep.pool, timing.past(program, sweep.name))
    ahead = timing.ahead(sweep)
    at_once = forecast(workload, ahead, seed=len(trials))
    for count in _counts(len(configurations)):
        size = _size(len(configurations), count)
        divided = forecast(replace(workload, rounds=count), ahead, seed=len(trials))
        if at_once.completion is None or divided.completion is None:
            return None
        longer = divided.completion.median / at_once.completion.median - 1
        if longer <= MOST_LONGER:
            return Waves(Rounds(size), -(-len(configurations) // size), longer, at_once.source)
    return None
