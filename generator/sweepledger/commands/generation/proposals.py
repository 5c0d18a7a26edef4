"""Packs, and waves of a static sweep with early stopping, that `sweep plan` proposes from recorded times."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from sweepledger.commands.repository.costs import Timing
from sweepledger.plan import DurationSource, PlannedTrials, estimate_durations, forecast
from sweepledger.search import Configuration
from sweepledger.structs import node_pool
from sweepledger.structs.early_stopping import COMPARING_RULES
from sweepledger.structs.program import Program
from sweepledger.structs.run_config import Pack, RunConfig, Shape
from sweepledger.structs.sweep import Sweep

POD_SECONDS = 600
"""Work of a pod: its start, of some seconds, is a percent of it or less."""
LONG_SECONDS = 120
"""Trials as long as this have pods of their own."""
MOST_TRIALS = 1_000
MOST_AT_ONCE = 128


def propose_pack(
    sweep: Sweep, trials: Sequence[Configuration | None], program: Program, timing: Timing
) -> str | None:
    """Return the block with the packs that suit the trials of a sweep's next batch, with the figures.

    None if the spec has packs or keys that exclude them, or if each trial should have a pod of its own.
    """
    run, search = sweep.run, sweep.search
    is_excluded = run.shape not in {None, Shape.INDEXED} or run.max_failed is not None
    if run.pack is not None or is_excluded or (search is not None and search.method.has_parents):
        return None
    pack, why = choose_pack(sweep, PlannedTrials(run, trials, sweep.pool, timing.past(program, sweep.name)))
    if pack is None:
        return None
    return f"write `pack: {{trials: {pack.trials}, at_once: {pack.at_once}}}` under run: {why}"


def choose_pack(sweep: Sweep, workload: PlannedTrials) -> tuple[Pack | None, str]:
    """Return the packs that suit trials, and why; None for a pod each."""
    run, trials = sweep.run, len(workload.trials)
    estimate = estimate_durations(workload)
    if isinstance(estimate, str) or not estimate.means:
        return None, f"a pod each: {estimate if isinstance(estimate, str) else 'there are no trials'}"
    seconds = median(estimate.means)
    source = "records" if estimate.source is DurationSource.RECORDS else "run.expected_minutes"
    lasts = f"a trial takes {seconds:.3g} s by {source}"
    if seconds >= LONG_SECONDS:
        return None, f"a pod each: {lasts}"
    at_once, limit = _at_once(run, sweep.pool)
    # Each place at a time has a pod at least, or fewer trials would run at once.
    most = min(MOST_TRIALS, -(-trials * at_once // run.parallelism))
    fitting = max(at_once, min(most, round(at_once * POD_SECONDS / max(seconds, 0.001))))
    count = min(fitting, max(1, trials))
    if count == 1:
        return None, f"a pod each: parallelism has room for all {trials} trials"
    return Pack(count, min(at_once, count)), f"{lasts}; {limit}"


def _at_once(run: RunConfig, pool: node_pool.Pool | None) -> tuple[int, str]:
    """Return how many trials may run at once in a pod, and what limits them."""
    if run.resources.gpu:
        return 1, "one at once, as sharing a GPU is for pack.at_once to say"
    if run.resources.shared_memory:
        return 1, "one at once, as trials share no memory"
    if pool is None:
        return 1, "one at once, as no pool says how large nodes are"
    for count in range(min(run.parallelism, MOST_AT_ONCE), 1, -1):
        is_divisor = run.parallelism % count == 0
        if is_divisor and node_pool.pods_per_node(replace(run, pack=Pack(count, count)), pool.node):
            return count, f"{count} at once have the CPUs and the memory of a node of {pool.name}"
    return 1, f"one at once has the CPUs and the memory of a node of {pool.name}"


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
