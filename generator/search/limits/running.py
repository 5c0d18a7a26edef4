"""What so many trials cost and need at once: budgets, what a shape can bear, the nodes of a pool."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from generator.problems import Place, Problem, Severity
from generator.structs import placing
from generator.structs.adaptive import Search
from generator.structs.names import DISTRIBUTED_NAME_LENGTH
from generator.structs.sweep import Shape, Sweep

MOST_JOBS = 100
"""Objects: beyond it `kustomize build` and a reviewer's patience both suffer."""

MOST_DISTRIBUTED = 50
"""Objects again, each of them of several pods."""

SECONDS_AN_HOUR = 3600


@dataclass(frozen=True, slots=True)
class _Limit:
    """One source of limits."""

    trials: int | None
    hours: float | None
    trials_place: Place
    hours_place: Place
    said: str
    raised: str
    """What a hint begins with: a person may raise the limits of a spec, not those of the settings."""


def budgets(sweep: Sweep, trials: int, *, is_all: bool) -> Iterator[Problem]:
    """Hold trials and their cost against what the sweep allows itself, and what the settings allow."""
    own, limits, anywhere = sweep.budget, sweep.limits, sweep.blocks[-1].place
    of_settings = " by the limits of sweepledger.yaml"
    sources = (
        _Limit(own.max_trials, own.max_gpu_hours, own.trials_place, own.hours_place, "", "raise it, "),
        _Limit(limits.max_trials, limits.max_gpu_hours, anywhere, anywhere, of_settings, ""),
    )
    for source in sources:
        yield from _budget(sweep, source, trials, more="" if is_all else " or more")


def _budget(sweep: Sweep, source: _Limit, trials: int, *, more: str) -> Iterator[Problem]:
    run = sweep.run
    if source.trials is not None and trials > source.trials:
        message = f"must make at most {source.trials} trials{source.said}, got {trials}{more}"
        hint = f"{source.raised}or try fewer values" if source.raised else "try fewer values"
        yield _over(sweep, source.trials_place, message, hint)
    attempts, hours = run.retries + 1, run.timeout_seconds / SECONDS_AN_HOUR
    gpus = run.resources.gpu * run.nodes
    cost = prod([trials, attempts, hours, gpus])
    if source.hours is not None and cost > source.hours:
        message = (
            f"must take at most {source.hours:g} GPU hours{source.said}, got {cost:g}{more} = "
            f"{trials} trials * {attempts} attempts * {hours:g} hours * {gpus} GPUs"
        )
        hint = f"{source.raised}lower run.timeout or run.retries, or try fewer values"
        yield _over(sweep, source.hours_place, message, hint)


def affordable(sweep: Sweep, trials: int) -> int:
    """Count of so many trials those that all limits bear."""
    return bisect_left(range(1, trials + 1), x=True, key=lambda few: any(budgets(sweep, few, is_all=True)))


def _over(sweep: Sweep, place: Place, message: str, hint: str) -> Problem:
    return Problem.at(sweep.path, place, message, code="budget-exceeded", hint=hint)


def shapes(sweep: Sweep, trials: int) -> Iterator[Problem]:
    """Refuse a shape that cannot bear so many trials, names so long, or what is asked of its trials."""
    shape = sweep.run.shape
    if sweep.search is not None and sweep.search.method.has_parents:
        found = _going_on(sweep, sweep.search, trials)
    elif shape in {None, Shape.INDEXED}:
        return
    elif shape is Shape.JOBS:
        found = _jobs(sweep, trials)
    else:
        found = _followed(sweep) or _distributed(sweep, trials)
    if found:
        message, hint = found
        yield Problem.at(sweep.path, sweep.shape_place, message, code="shape-limit", hint=hint)


def _going_on(sweep: Sweep, search: Search, trials: int) -> tuple[str, str] | None:
    """Each trial of a round mounts another folder, which only a Job of its own can say."""
    asked = str(sweep.run.shape or Shape.INDEXED)
    if sweep.run.shape not in {None, Shape.JOBS} or sweep.run.max_failed is not None:
        return f"must be 'jobs' where trials go on from others' checkpoints, got {asked!r}", "delete the key"
    if trials > MOST_JOBS:
        message = f"must have rounds of at most {MOST_JOBS} trials where these go on from others' checkpoints"
        return f"{message}, got {trials}", f"at most rounds: {{size: {_most_going_on(search)}}}"
    if _starts_too_many(sweep, trials):
        rule = f"must have rounds of at most {sweep.run.parallelism} trials (its parallelism), each a Job"
        hint = "delete parallelism, or choose a pool with a queue: it alone holds objects back"
        return f"{rule}, got {trials}", hint
    return None


def _most_going_on(search: Search) -> int:
    sizes = (replace(search, rounds=replace(search.rounds, size=size)) for size in range(MOST_JOBS, 1, -1))
    return next((one.rounds.size for one in sizes if one.largest_round <= MOST_JOBS), 1)


def _followed(sweep: Sweep) -> tuple[str, str] | None:
    """Of several pods one sees what the trial reports, and ending that one ends no other."""
    if sweep.early_stop is None:
        return None
    message = f"must be 'jobs' or 'indexed' where trials are ended early, got {str(sweep.run.shape)!r}"
    return message, "delete the key, or early_terminate"


def _distributed(sweep: Sweep, trials: int) -> tuple[str, str] | None:
    """Several pods a trial are several times as much to read, and their names are longer."""
    shape, length = f"shape {str(sweep.run.shape)!r}", len(sweep.name)
    if trials > MOST_DISTRIBUTED:
        message = f"must have at most {MOST_DISTRIBUTED} trials in {shape}, got {trials}"
        return message, "try fewer values, or one pod a trial: delete the key"
    if length > DISTRIBUTED_NAME_LENGTH:
        rule = f"must be in a sweep with a name of at most {DISTRIBUTED_NAME_LENGTH} characters in {shape}"
        hint = "rename the sweep: the names of its pods are longer, and end at 63 characters"
        return f"{rule}, got {length}", hint
    if _starts_too_many(sweep, trials):
        rule = f"must have at most {sweep.run.parallelism} trials (its parallelism) in {shape}"
        hint = f"set parallelism: {trials}, or choose a pool with a queue: it alone holds objects back"
        return f"{rule}, got {trials}", hint
    return None


def _starts_too_many(sweep: Sweep, trials: int) -> bool:
    """Tell whether more would start than may run at once: nothing but a queue holds whole objects back."""
    is_queued = sweep.pool is not None and sweep.pool.queue is not None
    return sweep.run.parallelism < trials and not is_queued


def _jobs(sweep: Sweep, trials: int) -> tuple[str, str] | None:
    """One Job a trial is for few trials, which all run at once."""
    parallelism = sweep.run.parallelism
    if trials > MOST_JOBS:
        return (
            f"must be 'indexed' for more than {MOST_JOBS} trials, got 'jobs' for {trials}",
            "delete the key",
        )
    if _starts_too_many(sweep, trials):
        rule = f"must be 'indexed' where parallelism ({parallelism}) is less than the trials ({trials})"
        return f"{rule}, got 'jobs'", f"delete the key, or set parallelism: {trials}"
    return None


def nodes(sweep: Sweep, trials: int) -> Iterator[Problem]:
    """Say when a pool has fewer nodes than its trials would fill: the rest waits, and the clock runs on."""
    run, pool = sweep.run, sweep.pool
    if pool is None or pool.max_nodes is None or placing.per_node(run, pool.node) == 0:
        return
    needed, at_once = placing.nodes(run, pool, trials), placing.most_at_once(run, pool)
    if needed > pool.max_nodes:
        message = (
            f"{min(run.parallelism, trials)} trials at once take {needed} nodes, and pool {pool.name!r} has "
            f"at most {pool.max_nodes}: the rest waits"
        )
        found = Problem.at(
            sweep.path,
            sweep.pool_place,
            message,
            code="pool-nodes",
            hint=f"parallelism: {at_once} fills them",
        )
        yield replace(found, severity=Severity.WARNING)
