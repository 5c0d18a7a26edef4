"""What a sweep may come to: its trials, its cost, and what a shape can bear."""

from collections.abc import Iterator
from math import prod

from generator.problems import Place, Problem
from generator.structs.counting import MOST_COMBINATIONS, MOST_TRIALS, combinations
from generator.structs.dimensions import size
from generator.structs.domain import Quantized
from generator.structs.space import SearchSpace
from generator.structs.sweep import Block, Draw, Grid, Sampler, Shape, Sweep

MOST_JOBS = 100
"""Objects: beyond it `kustomize build` and a reviewer's patience both suffer."""

SECONDS_AN_HOUR = 3600


def before(sweep: Sweep) -> Iterator[Problem]:
    """Refuse by arithmetic what is too large, or too small, to be looked at."""
    for block in sweep.blocks:
        match block:
            case Grid(space, cap, seed) if cap is None or seed is None:
                total = combinations(space)
                if total > MOST_COMBINATIONS:
                    yield _too_many(sweep, block, total)
            case Draw(sampler, space, _, cap) if sampler is not Sampler.LATIN_HYPERCUBE:
                there = _distinct(space)
                if there is not None and there < cap:
                    yield _too_few(sweep, block, there, cap)
            case _:
                pass


def _too_many(sweep: Sweep, block: Block, total: int) -> Problem:
    message = f"must have at most {MOST_COMBINATIONS} combinations, got {total}"
    hint = "try fewer values, or set run_cap with `grid_order: shuffled` and a seed"
    return Problem.at(sweep.path, block.place, message, code="too-many-trials", hint=hint)


def _distinct(space: SearchSpace) -> int | None:
    """Count what a draw can give at most; None where that is without end, or nearly."""
    domains = [parameter.domain for parameter in space.parameters]
    if any(size(domain) is None or isinstance(domain, Quantized) for domain in domains):
        return None
    return combinations(space)


def _too_few(sweep: Sweep, block: Block, there: int, cap: int) -> Problem:
    message = f"run_cap asks for {cap} assignments, the space has only {there} different ones"
    hint = f"set run_cap: {there}, use method: grid, or widen the domains"
    return Problem.at(sweep.path, block.place, message, code="run-cap-unreached", hint=hint)


def after(sweep: Sweep, assignments: int) -> Iterator[Problem]:
    """Hold the number of trials against every limit."""
    trials = assignments * sweep.replicates
    if trials > MOST_TRIALS:
        yield from _trials(sweep, assignments)
        return
    yield from _budget(sweep, trials)
    yield from _shape(sweep, trials)


def _trials(sweep: Sweep, assignments: int) -> Iterator[Problem]:
    factors = f"{assignments} assignments * {sweep.replicates} replicates" if sweep.replicates > 1 else "more"
    message = f"must make at most {MOST_TRIALS} trials, got {factors}"
    hint = "try fewer values, set run_cap, or split the sweep"
    yield Problem.at(sweep.path, sweep.blocks[-1].place, message, code="too-many-trials", hint=hint)


def _budget(sweep: Sweep, trials: int) -> Iterator[Problem]:
    budget, run = sweep.budget, sweep.run
    if budget.max_trials is not None and trials > budget.max_trials:
        message = f"must make at most {budget.max_trials} trials, got {trials}"
        hint = "raise it, or try fewer values"
        yield _over(sweep, "max_trials", message, hint)
    attempts, hours = run.retries + 1, run.timeout_seconds / SECONDS_AN_HOUR
    cost = prod([trials, attempts, hours, run.resources.gpu])
    if budget.max_gpu_hours is not None and cost > budget.max_gpu_hours:
        message = (
            f"must take at most {budget.max_gpu_hours:g} GPU hours, got {cost:g} = {trials} trials * "
            f"{attempts} attempts * {hours:g} hours * {run.resources.gpu} GPUs"
        )
        hint = "raise it, lower run.timeout or run.retries, or try fewer values"
        yield _over(sweep, "max_gpu_hours", message, hint)


def _over(sweep: Sweep, key: str, message: str, hint: str) -> Problem:
    written = sweep.budget.place
    place = Place(f"{written.path or 'budget'}.{key}", written.line, written.column)
    return Problem.at(sweep.path, place, message, code="budget-exceeded", hint=hint)


def _shape(sweep: Sweep, trials: int) -> Iterator[Problem]:
    """One Job a trial is for few trials that may all run at once: nothing else holds Jobs back."""
    if sweep.run.shape is not Shape.JOBS:
        return
    parallelism = sweep.run.parallelism
    if trials > MOST_JOBS:
        message = f"must be 'indexed' for more than {MOST_JOBS} trials, got 'jobs' for {trials}"
        hint = "delete the key"
    elif parallelism < trials:
        rule = f"must be 'indexed' where parallelism ({parallelism}) is less than the trials ({trials})"
        message = f"{rule}, got 'jobs'"
        hint = f"delete the key, or set parallelism: {trials}"
    else:
        return
    yield Problem.at(sweep.path, sweep.shape_place, message, code="shape-limit", hint=hint)
