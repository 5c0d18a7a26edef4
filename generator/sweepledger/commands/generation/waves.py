"""Waves: the rounds that `sweep plan` proposes for a static sweep with early stopping, if they cost little time."""

from collections.abc import Sequence
from dataclasses import replace

from sweepledger.commands.repository.costs import Timing
from sweepledger.plan import DurationSource, PlannedTrials, forecast
from sweepledger.search import Configuration
from sweepledger.structs.early_stopping import COMPARING_RULES
from sweepledger.structs.program import Program
from sweepledger.structs.sweep import Sweep

MOST_LONGER = 0.1
"""How much longer the sweep may take, as a share of its time in one batch."""
SMALLEST_WAVE = 8
"""Configurations: with fewer, rules stop good trials too often (docs/performance.md)."""
MOST_WAVES = 8


def propose_rounds(
    sweep: Sweep, configurations: Sequence[Configuration], program: Program, timing: Timing
) -> str | None:
    """Return the block for the most waves that are forecast to take little longer than one batch, with the figures.

    None if the spec has rounds, no rule compares its trials, or all waves would take longer.
    """
    if sweep.rounds is not None or not isinstance(sweep.early_stop, COMPARING_RULES):
        return None
    trials = [assignment for assignment in configurations for _ in range(sweep.replicates)]
    workload = PlannedTrials(sweep.run, trials, sweep.pool, timing.past(program, sweep.name))
    ahead = timing.ahead(sweep)
    at_once = forecast(workload, ahead, seed=len(trials))
    for count in range(min(MOST_WAVES, len(configurations) // SMALLEST_WAVE), 1, -1):
        size = -(-len(configurations) // count)
        divided = forecast(replace(workload, rounds=count), ahead, seed=len(trials))
        if at_once.completion_seconds is None or divided.completion_seconds is None:
            return None
        longer = divided.completion_seconds.median / at_once.completion_seconds.median - 1
        if longer <= MOST_LONGER:
            known = "" if at_once.source is DurationSource.RECORDS else ", by expected_minutes alone"
            return (
                f"write `rounds: {{size: {size}}}` for {-(-len(configurations) // size)} waves, so that "
                "early_terminate compares later trials with earlier ones: "
                f"{100 * max(0.0, longer):.0f} % longer if none ends early{known}"
            )
    return None
