"""What a sweep may come to: its trials, its table, its cost, and what a shape can bear."""

from collections.abc import Collection, Iterator
from math import prod
from typing import assert_never

from generator.problems import Problem
from generator.search.limits import running
from generator.search.limits.weights import MOST_BYTES, MOST_CELLS, largest_row, least_row, table
from generator.search.limits.work import MOST_WORK, Price, price
from generator.search.settling import Assignment
from generator.structs.adaptive import Search
from generator.structs.counting import MOST_COMBINATIONS, MOST_TRIALS, combinations
from generator.structs.dimensions import dimensions, size
from generator.structs.domain import Choice, Quantized
from generator.structs.space import SearchSpace
from generator.structs.sweep import Block, Draw, Grid, Listing, Sampler, Sweep

MOST_SHUFFLED = 10**30
"""Of a grid in shuffled order, whose places are mixed as pairs of 64-bit numbers."""


def before(sweep: Sweep) -> Iterator[Problem]:
    """Refuse by arithmetic what is too large, or too small, to be looked at."""
    sizes = tuple(_sizes(sweep))
    yield from sizes
    trials, is_all = max(map(_walked, sweep.blocks)) * sweep.replicates, len(sweep.blocks) == 1
    counted = tuple(running.budgets(sweep, trials, is_all=is_all))
    yield from counted
    if not sizes and trials > MOST_TRIALS:
        yield from _trials(sweep, trials // sweep.replicates)
    elif not sizes and not counted:
        tables = tuple(_known(sweep))
        yield from tables or _work(sweep)


def _walked(block: Block) -> int:
    """Count the assignments of a grid where each combination is one; 0 where that is not known."""
    match block:
        case Grid(space, None, _) if not space.constraints and not any(one.when for one in space.parameters):
            return combinations(space)
        case _:
            return 0


def most_assignments(sweep: Sweep) -> int:
    """Count how many assignments a sweep may have; some of the limits are looked at later only."""
    return min(MOST_TRIALS, MOST_CELLS // (max(1, len(sweep.columns)) * sweep.replicates))


def most_bytes(sweep: Sweep) -> int | None:
    """Count how many bytes the assignments of a sweep may have; None where they cannot be so many."""
    if max(map(largest_row, sweep.blocks)) * MOST_TRIALS <= MOST_BYTES:
        return None
    return MOST_BYTES // sweep.replicates


def _sizes(sweep: Sweep) -> Iterator[Problem]:
    for block in sweep.blocks:
        match block:
            case Grid(space, _, int()) if prod(one.size for one in dimensions(space)) > MOST_SHUFFLED:
                message = "must have at most 10^30 combinations, however few are chosen, got more"
                hint = "use method: random, or fewer values"
                yield Problem.at(sweep.path, block.place, message, code="too-many-trials", hint=hint)
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


def _work(sweep: Sweep) -> Iterator[Problem]:
    """Refuse what takes too long even if it goes well."""
    prices = [price(block) for block in sweep.blocks]
    total = sum(one.work for one in prices)
    if total <= MOST_WORK:
        return
    worst = max(range(len(prices)), key=lambda at: prices[at].work)
    message = f"must take at most {MOST_WORK} steps to look at, got {_steps(prices[worst], total)}"
    hint = "try fewer values or a smaller run_cap, fewer or shorter expressions, or several sweeps"
    yield Problem.at(sweep.path, sweep.blocks[worst].place, message, code="too-much-work", hint=hint)


def _steps(worst: Price, total: int) -> str:
    factors = f"{worst.candidates} candidates * {worst.steps} steps"
    if total == worst.work:
        return f"{total} = {factors}"
    return f"{total} in all blocks, {worst.work} = {factors} in this one"


def _known(sweep: Sweep) -> Iterator[Problem]:
    """Refuse a table that is too large for certain."""
    for block in sweep.blocks:
        trials, columns = _certain(block) * sweep.replicates, len(sweep.columns)
        if trials > MOST_TRIALS:
            continue  # what is said of the trials is enough
        if trials * columns > MOST_CELLS:
            yield _cells(sweep, block, f"{trials} trials")
        elif (row := least_row(block)) * trials > MOST_BYTES:
            yield _bytes(sweep, block, f"{row * trials // 2**20} MiB = {trials} trials * {row} bytes or more")
        else:
            continue
        return


def _certain(block: Block) -> int:
    """Count the assignments that a block has unless it is refused for something else."""
    match block:
        case Draw(sampler=Sampler.LATIN_HYPERCUBE, space=space, cap=cap):
            return 0 if space.constraints else cap
        case Draw(cap=cap):
            return cap
        case Grid(space, None, _) if not space.constraints:
            return combinations(space)
        case Grid():
            return 0
        case Listing(space, assignments):
            return 0 if space.constraints else len(assignments)
        case Search():
            return 0
        case _:
            assert_never(block)


def _cells(sweep: Sweep, block: Block, trials: str) -> Problem:
    message = f"must make a table of at most {MOST_CELLS} values, got {trials} * {len(sweep.columns)} columns"
    return _too_large(sweep, block, message)


def _bytes(sweep: Sweep, block: Block, found: str) -> Problem:
    return _too_large(sweep, block, f"must make a table of at most {MOST_BYTES // 2**20} MiB, got {found}")


def _too_large(sweep: Sweep, block: Block, message: str) -> Problem:
    hint = "try fewer trials, or keep in the program what does not change, or what follows from the rest"
    return Problem.at(sweep.path, block.place, message, code="too-large-table", hint=hint)


def _distinct(space: SearchSpace) -> int | None:
    """Count what a draw can give at most; None where that is without end, or nearly."""
    domains = [parameter.domain for parameter in space.parameters]
    if any(size(domain) is None or isinstance(domain, Quantized) for domain in domains):
        return None
    return combinations(space)


def _too_few(sweep: Sweep, block: Block, there: int, cap: int) -> Problem:
    message = f"run_cap asks for {cap} assignments, the space has only {there} different ones"
    domains = [parameter.domain for parameter in block.space.parameters]
    if any(isinstance(domain, Choice) and domain.probabilities is not None for domain in domains):
        hint = "lower run_cap, or widen the domains"
    elif block.space.constraints or any(parameter.when for parameter in block.space.parameters):
        hint = "use method: grid, which needs no run_cap, or widen the domains"
    else:
        hint = f"set run_cap: {there}, use method: grid, or widen the domains"
    return Problem.at(sweep.path, block.place, message, code="run-cap-unreached", hint=hint)


def after(sweep: Sweep, found: Collection[Assignment]) -> Iterator[Problem]:
    """Hold what was found against every limit."""
    assignments, block = len(found), sweep.blocks[-1]
    trials = assignments * sweep.replicates
    if trials > MOST_TRIALS:
        yield from _trials(sweep, assignments)
        yield from running.budgets(sweep, trials, is_all=False)
        return
    if trials * len(sweep.columns) > MOST_CELLS:
        yield _cells(sweep, block, f"{trials} trials or more")
        return
    if most_bytes(sweep) is not None and (heavy := table(found) * sweep.replicates) > MOST_BYTES:
        yield _bytes(sweep, block, f"{heavy // 2**20} MiB or more")
        return
    yield from running.budgets(sweep, trials, is_all=True)
    yield from running.shapes(sweep, trials)
    yield from running.nodes(sweep, trials)


def of_a_round(sweep: Sweep, trials: int) -> Iterator[Problem]:
    """Hold the first round of a search against every limit; the others are no larger."""
    if trials > MOST_TRIALS:
        yield from _trials(sweep, trials // sweep.replicates)
        return
    yield from running.budgets(sweep, trials, is_all=False)
    yield from running.shapes(sweep, trials)
    yield from running.nodes(sweep, trials)


def _trials(sweep: Sweep, assignments: int) -> Iterator[Problem]:
    factors = f"{assignments} assignments * {sweep.replicates} replicates" if sweep.replicates > 1 else "more"
    message = f"must make at most {MOST_TRIALS} trials, got {factors}"
    hint = "try fewer values, set run_cap, or split the sweep"
    yield Problem.at(sweep.path, sweep.blocks[-1].place, message, code="too-many-trials", hint=hint)
