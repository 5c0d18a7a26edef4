"""Limits of a sweep, and the problems if they are exceeded: trials, table, work, budget, shape, pool nodes."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import islice
from math import prod

from msgspec.structs import replace

from sweepledger.problems import Problem, Severity, SourceMap, SourcePath
from sweepledger.reader.safe_repr import truncate
from sweepledger.search import estimates
from sweepledger.search.configurations import Configuration
from sweepledger.structs import node_pool, search_block
from sweepledger.structs.names import MAX_DISTRIBUTED_NAME_LENGTH
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import SweepLimits
from sweepledger.structs.space import (
    MAX_COMBINATIONS,
    MAX_TRIALS,
    SearchSpace,
    count_combinations,
    count_distinct,
    list_dimensions,
)
from sweepledger.structs.sweep import Budget, Sweep
from sweepledger.structs.values import SECONDS_PER_HOUR

MAX_JOBS = 100
"""More Jobs are slow to build with kustomize and long to review."""

MAX_DISTRIBUTED = 50
"""The same for objects with several pods."""

MOST_MEBIBYTES = f"{estimates.MAX_BYTES // 2**20} MiB"


def problems_before(sweep: Sweep, source: SourceMap) -> Iterator[Problem]:
    """Yield the problems of spaces that are too large or too small, computed without examining candidates."""
    sizes = tuple(_size_problems(sweep, source))
    yield from sizes
    design, trials = sweep.design, 0
    if isinstance(design, search_block.GridSearch) and design.cap is None and not design.space.constraints:
        is_conditional = any(parameter.when for parameter in design.space.parameters)
        # Each combination is a configuration.
        trials = 0 if is_conditional else count_combinations(design.space) * sweep.replicates
    over_budget = tuple(_budget_problems(sweep, source, trials, is_all=True))
    yield from over_budget
    if not sizes and trials > MAX_TRIALS:
        yield from _too_many_trials(sweep, source, trials // sweep.replicates)
    elif not sizes and not over_budget:
        tables = tuple(_table_problems(sweep, source))
        yield from tables
        estimate = estimates.estimate_work(sweep.design)
        if not tables and estimate.work > estimates.MAX_WORK:
            work = f"{estimate.work} = {estimate.candidates} candidates * {estimate.steps} steps"
            message = f"must take at most {estimates.MAX_WORK} steps to expand, got {work}"
            hint = "try fewer values or a smaller run_cap, fewer or shorter expressions, or several sweeps"
            yield source.problem(message, "search", code="too-much-work", hint=hint)


def problems_after(
    sweep: Sweep, source: SourceMap, configurations: Collection[Configuration]
) -> Iterator[Problem]:
    """Yield the problems of a sweep with these configurations."""
    trials, search = len(configurations) * sweep.replicates, source.part("search")
    if trials > MAX_TRIALS:
        yield from _too_many_trials(sweep, source, len(configurations))
        yield from _budget_problems(sweep, source, trials, is_all=False)
        return
    if trials * len(sweep.columns) > estimates.MAX_CELLS:
        cells = f"{trials} trials or more * {len(sweep.columns)} columns"
        yield _too_large(search, f"{estimates.MAX_CELLS} values, got {cells}")
        return
    if max_table_bytes(sweep) is not None:
        rows = (map(estimates.value_bytes, row.values()) for row in configurations)
        total = sum(map(sum, rows)) * sweep.replicates
        if total > estimates.MAX_BYTES:
            yield _too_large(search, f"{MOST_MEBIBYTES}, got {total // 2**20} MiB or more")
            return
    yield from batch_problems(sweep, source, trials, is_all=True)


def batch_problems(
    sweep: Sweep, source: SourceMap, trials: int, *, is_all: bool = False
) -> Iterator[Problem]:
    """Yield the problems of a batch with this number of trials, all of the sweep or its largest round."""
    if trials > MAX_TRIALS:
        yield from _too_many_trials(sweep, source, trials // sweep.replicates)
        return
    yield from _budget_problems(sweep, source, trials, is_all=is_all)
    yield from _shape_problems(sweep, source, trials)
    yield from _pool_problems(sweep, source, trials)


def max_table_bytes(sweep: Sweep) -> int | None:
    """Return how many bytes the configurations of a sweep may have; None: they cannot exceed the limit."""
    if estimates.max_row_bytes(sweep.design) * MAX_TRIALS <= estimates.MAX_BYTES:
        return None
    return estimates.MAX_BYTES // sweep.replicates


def _size_problems(sweep: Sweep, source: SourceMap) -> Iterator[Problem]:
    design, search = sweep.design, source.part("search")
    if not isinstance(design, search_block.GridSearch):
        for parameter in design.space.parameters:
            # Draws that are equal because of their few digits.
            if (narrow := parameter.domain.narrowness()) is not None:
                message, hint = f"{parameter.name} must have {narrow[0]}", narrow[1]
                yield search.problem(message, "parameters", parameter.name, code="single-value", hint=hint)
    match design:
        case search_block.GridSearch(space):
            yield from _grid_problems(space, search)
        case search_block.RandomSearch(sampler, space, _, cap) if not sampler.has_fixed_count:
            distinct = count_distinct(space)
            if distinct is not None and distinct < cap:
                message = (
                    f"run_cap requests {cap} configurations, the space has only {distinct} different ones"
                )
                hint = "widen the domains"
                if any(parameter.domain.chances is not None for parameter in space.parameters):
                    hint = f"lower run_cap, or {hint}"
                elif space.constraints or any(parameter.when for parameter in space.parameters):
                    hint = f"use method: grid, which needs no run_cap, or {hint}"
                else:
                    hint = f"set run_cap: {distinct}, use method: grid, or {hint}"
                yield search.problem(message, code="run-cap-unreached", hint=hint)


def _grid_problems(space: SearchSpace, search: SourceMap) -> Iterator[Problem]:
    """Yield a problem of a grid that is too large to enumerate, or too large to run as a whole."""
    total, is_conditional = count_combinations(space), any(each.when for each in space.parameters)
    before = " before constraints" * bool(space.constraints)
    most, noun = MAX_COMBINATIONS, f"combinations{before}"
    if not (before or is_conditional):
        most, noun = MAX_TRIALS, "trials"
    if total > most:
        sizes = Counter(each.size for each in list_dimensions(space) if each.size > 1)
        powers = [f"{size}^{times}" if times > 1 else str(size) for size, times in sizes.items()]
        factors = "" if is_conditional or sizes.total() == 1 else f" = {' * '.join(powers)}"
        message = f"must make at most {most} {noun}, got {truncate(f'{total}{factors}')}"
        hint = "try fewer values, or draw a part of them: method: random with seed and run_cap"
        yield search.problem(message, code="too-many-trials", hint=hint)


def _too_many_trials(sweep: Sweep, source: SourceMap, configurations: int) -> Iterator[Problem]:
    factors = (
        f"{configurations} configurations * {sweep.replicates} replicates" if sweep.replicates > 1 else "more"
    )
    message = f"must make at most {MAX_TRIALS} trials, got {factors}"
    hint = "try fewer values, set run_cap, or split the sweep"
    yield source.problem(message, "search", code="too-many-trials", hint=hint)


def _table_problems(sweep: Sweep, source: SourceMap) -> Iterator[Problem]:
    search = source.part("search")
    trials, columns = _min_configurations(sweep.design) * sweep.replicates, len(sweep.columns)
    if trials > MAX_TRIALS:
        return  # the problem about the number of trials is enough
    if trials * columns > estimates.MAX_CELLS:
        yield _too_large(search, f"{estimates.MAX_CELLS} values, got {trials} trials * {columns} columns")
    elif (row := estimates.min_row_bytes(sweep.design)) * trials > estimates.MAX_BYTES:
        size = f"{row * trials // 2**20} MiB = {trials} trials * {row} bytes or more"
        yield _too_large(search, f"{MOST_MEBIBYTES}, got {size}")


def _min_configurations(design: search_block.Design) -> int:
    """Count the configurations that a design has unless another rule rejects it."""
    match design:
        case search_block.RandomSearch(sampler) if not sampler.has_fixed_count:
            is_sure = True
        case search_block.GridSearch(cap=int()):
            is_sure = False
        case _:
            is_sure = not design.space.constraints
    return estimates.estimate_work(design).candidates if is_sure else 0


def _too_large(source: SourceMap, size: str) -> Problem:
    message = f"must make a table of at most {size}"
    hint = "try fewer trials, or move constants and derived values into the program"
    return source.problem(message, code="too-large-table", hint=hint)


def _budget_problems(sweep: Sweep, source: SourceMap, trials: int, *, is_all: bool) -> Iterator[Problem]:
    """Compare trials and their upper bound with the limits of the spec and of the settings."""
    for part, message, hint in budget_excesses(sweep, trials, is_all=is_all):
        yield source.problem(message, *part, code="budget-exceeded", hint=hint)


def budget_excesses(
    sweep: Sweep, trials: int, *, is_all: bool = True
) -> Iterator[tuple[SourcePath, str, str]]:
    """Yield the limits of the spec and of the settings that trials or their upper bound exceed.

    Each comes with the part of the sweep that the author may change, a message and a hint.
    """
    run, more = sweep.run, "" if is_all else " or more"
    hours, gpus = run.timeout_seconds / SECONDS_PER_HOUR, node_pool.gpus_per_trial(run, sweep.pool)
    bound = prod([trials, run.attempts, hours, gpus])
    limit: Budget | SweepLimits
    for limit in (sweep.budget, sweep.limits):
        is_own = isinstance(limit, Budget)
        # The author may raise the limits of the spec, but not those of the settings.
        origin, first = ("", "raise it, ") if is_own else (" by the limits of sweepledger.yaml", "")
        if limit.max_trials is not None and trials > limit.max_trials:
            message = f"must make at most {limit.max_trials} trials{origin}, got {trials}{more}"
            hint = "raise it, or try fewer values" if is_own else "try fewer values"
            yield ("budget", "max_trials") if is_own else ("search",), message, hint
        if limit.max_gpu_hours is not None and bound > limit.max_gpu_hours:
            message = f"must take at most {limit.max_gpu_hours:g} GPU hours{origin}, got {bound:g}{more} = "
            message += f"{trials} trials * {run.attempts} attempts * {hours:g} hours * {gpus:g} GPUs"
            hint = f"{first}lower run.timeout or run.retries, or try fewer values"
            yield ("budget", "max_gpu_hours") if is_own else ("search",), message, hint


def affordable_trials(sweep: Sweep, trials: int) -> int:
    """Return the largest number of trials, up to `trials`, that all budget limits allow."""
    return bisect_left(range(1, trials + 1), x=True, key=lambda count: any(budget_excesses(sweep, count)))


def _shape_problems(sweep: Sweep, source: SourceMap, trials: int) -> Iterator[Problem]:
    """Yield a problem if the shape does not support this number of trials, the sweep's name, or its method."""
    shape = sweep.run.shape
    if sweep.search is not None and sweep.search.continues_trials:
        limits = _continuation_limits(sweep, sweep.search, trials)
    elif shape in {None, Shape.INDEXED}:
        return
    elif shape is Shape.JOBS:
        limits = _jobs_limits(sweep.run.parallelism, trials)
    else:
        limits = _distributed_limits(sweep, trials)
    for message, hint in islice(limits, 1):
        yield source.problem(message, "run", "shape", code="shape-limit", hint=hint)


def _continuation_limits(
    sweep: Sweep, search: search_block.AdaptiveSearch, trials: int
) -> Iterator[tuple[str, str]]:
    """Check a search whose trials continue others: each trial mounts another folder, so it needs its own Job."""
    others = "if {} continue from checkpoints of others, got {}".format
    if sweep.run.shape not in {None, Shape.JOBS} or sweep.run.max_failed is not None:
        shape = str(sweep.run.shape or Shape.INDEXED)
        yield f"must be 'jobs' {others('trials', repr(shape))}", "delete the key"
    if trials > MAX_JOBS:
        sizes = range(MAX_JOBS, 1, -1)
        smaller = (replace(search, rounds=replace(search.rounds, size=size)) for size in sizes)
        most = next((each.rounds.size for each in smaller if each.largest_round <= MAX_JOBS), 1)
        message = f"must have rounds of at most {MAX_JOBS} trials {others('these', trials)}"
        yield message, f"set rounds: {{size: {most}}} or less"
    if (at_once := sweep.run.parallelism) < trials:
        message = (
            f"must have rounds of at most {at_once} trials (its parallelism), one Job per trial, got {trials}"
        )
        yield message, "delete parallelism: a round starts as a whole"


def _distributed_limits(sweep: Sweep, trials: int) -> Iterator[tuple[str, str]]:
    """Check a distributed shape: it has more objects to review, and longer names."""
    shape, at_once = repr(str(sweep.run.shape)), sweep.run.parallelism
    if sweep.early_stop is not None:
        # Only one of several pods sees the reported values, and ending it does not end the others.
        message = f"must be 'jobs' or 'indexed' if trials may be stopped early, got {shape}"
        yield message, "delete the key, or early_terminate"
    if trials > MAX_DISTRIBUTED:
        message = f"must have at most {MAX_DISTRIBUTED} trials in shape {shape}, got {trials}"
        yield message, "try fewer values, or delete the key for one pod per trial"
    if (length := len(sweep.name)) > (longest := MAX_DISTRIBUTED_NAME_LENGTH):
        message = (
            f"must be in a sweep with a name of at most {longest} characters in shape {shape}, got {length}"
        )
        yield message, "rename the sweep: the names of its pods are longer, with at most 63 characters"
    if at_once < trials:
        # A queue admits as many objects as its quota holds, whatever number a spec asks for.
        message = f"must have at most {at_once} trials (its parallelism) in shape {shape}, got {trials}"
        yield message, f"set parallelism: {trials}, or try fewer values"


def _jobs_limits(at_once: int, trials: int) -> Iterator[tuple[str, str]]:
    """Check shape jobs: one Job per trial suits few trials, which all run at the same time."""
    if trials > MAX_JOBS:
        yield f"must be 'indexed' for more than {MAX_JOBS} trials, got 'jobs' for {trials}", "delete the key"
    if at_once < trials:
        rule = f"parallelism ({at_once}) is less than the number of trials ({trials})"
        yield f"must be 'indexed' if {rule}, got 'jobs'", f"delete the key, or set parallelism: {trials}"


def _pool_problems(sweep: Sweep, source: SourceMap, trials: int) -> Iterator[Problem]:
    """Yield a warning if the trials need more nodes than the pool has: the others wait while timeouts run."""
    run, pool = sweep.run, sweep.pool
    if pool is None or pool.max_nodes is None or node_pool.pods_per_node(run, pool.node) == 0:
        return
    needed, at_once = node_pool.required_nodes(run, pool, trials), node_pool.max_concurrent_trials(run, pool)
    if needed > pool.max_nodes:
        message = (
            f"{min(run.parallelism, trials)} concurrent trials need {needed} nodes, but pool {pool.name!r} has "
            f"at most {pool.max_nodes}: the rest waits"
        )
        hint = f"set parallelism: {at_once} to fill the pool"
        severity = Severity.WARNING
        yield source.problem(message, "run", "parallelism", code="pool-nodes", hint=hint, severity=severity)
