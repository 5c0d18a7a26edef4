"""From blocks to one list of assignments, and from assignments to trials."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType

from generator.errors import SpecError
from generator.problems import Problem, Severity
from generator.search.blocks import Explored, Limits, explored
from generator.search.findings import findings
from generator.search.grid import grid
from generator.search.limits import totals
from generator.search.limits.weights import table
from generator.search.limits.work import MOST_WORK, Price, bound, price
from generator.search.settling import Assignment
from generator.structs.adaptive import Search
from generator.structs.program import Program
from generator.structs.space import SearchSpace
from generator.structs.sweep import Block, Draw, Grid, Sampler, Sweep
from generator.structs.trial import Trial
from generator.structs.values import identity


@dataclass(frozen=True, slots=True)
class BlockCount:
    """What became of a block's candidates, in this order; the rest was kept."""

    candidates: int
    """Combinations, draws or lines looked at."""
    rejected: int
    """By a constraint."""
    duplicates: int
    """Equal to an assignment before, of this block or another."""
    rejections: tuple[int, ...] = ()
    """For how many candidates each constraint does not hold, in their order."""
    unasked: tuple[int, ...] = ()
    """For how many candidates each constraint lacks a value that it asks for, and so holds."""

    @property
    def kept(self) -> int:
        """Assignments that this block adds to the sweep."""
        return self.candidates - self.rejected - self.duplicates


@dataclass(frozen=True, slots=True)
class Expansion:
    """Every assignment that a sweep asks for, each once, in the order of its trials."""

    assignments: tuple[Assignment, ...]
    blocks: tuple[BlockCount, ...]
    """One a block, in the order of the spec."""
    warnings: tuple[Problem, ...] = ()


def explore(sweep: Sweep) -> Expansion | tuple[Problem, ...]:
    """Find a sweep's assignments, or every reason why it has none to offer."""
    if sweep.search is not None:
        return _probed(sweep, sweep.search)
    refused = tuple(totals.before(sweep))
    if refused:
        return refused
    match sweep.blocks:
        case (Grid(space, cap=None, seed=None),) if is_plain(space):
            assignments = tuple(map(MappingProxyType, grid(space)))
            expansion = Expansion(assignments, (BlockCount(len(assignments), 0, 0),))
            said: list[Problem] = []
        case _:
            expansion, said = _explored(sweep)
    said += totals.after(sweep, expansion.assignments)
    errors = tuple(sorted(problem for problem in said if problem.severity is Severity.ERROR))
    return errors or Expansion(expansion.assignments, expansion.blocks, tuple(sorted(said)))


def _probed(sweep: Sweep, search: Search) -> Expansion | tuple[Problem, ...]:
    """Look whether a search by rounds could find anything; its assignments come a round at a time."""
    chance = Draw(Sampler.RANDOM, search.space, search.seed, cap=1, place=search.place)
    found = explore(replace(sweep, blocks=(chance,)))
    said = totals.of_a_round(sweep, search.largest_round * sweep.replicates)
    if not isinstance(found, Expansion):
        return found
    problems = tuple(sorted({*found.warnings, *said}))
    errors = tuple(problem for problem in problems if problem.severity is Severity.ERROR)
    return errors or Expansion((), (BlockCount(0, 0, 0),), problems)


def is_plain(space: SearchSpace) -> bool:
    """Tell whether every combination is an assignment as it stands: the case of very large grids."""
    conditional = any(parameter.when for parameter in space.parameters)
    return not (conditional or space.zips or space.derived or space.constraints)


def _sameness(sweep: Sweep) -> Callable[[Assignment], Hashable]:
    names = sorted(sweep.columns)

    def key(assignment: Assignment) -> Hashable:
        return tuple([identity(assignment[name]) if name in assignment else _ABSENT for name in names])

    return key


_ABSENT = object()


def _explored(sweep: Sweep) -> tuple[Expansion, list[Problem]]:
    """Look at blocks one after the other; what an earlier one has, a later one does not add again.

    Candidates that give nothing are paid for out of one purse: a hundred hopeless blocks cost as much as one.
    """
    key, most, heaviest = _sameness(sweep), totals.most_assignments(sweep), totals.most_bytes(sweep)
    prices = [price(block) for block in sweep.blocks]
    purse = MOST_WORK - sum(one.work for one in prices)
    assignments: dict[Hashable, Assignment] = {}
    counts, heavy = list[BlockCount](), 0
    said: list[Problem] = []
    for block, cost in zip(sweep.blocks, prices, strict=True):
        found = explored(block, key, Limits(most, _candidates(block, cost, purse), heaviest))
        purse -= max(0, found.candidates - cost.candidates) * cost.steps
        before = len(assignments)
        for same, assignment in found.distinct.items():
            assignments.setdefault(same, assignment)
        counts.append(_count(found, len(assignments) - before))
        said += findings(found, sweep.path)
        heavy += found.bytes
        if heaviest is not None and heavy > heaviest:
            heavy = table(assignments.values())
        if len(assignments) > most or heavy > (heaviest or heavy):
            break
    return Expansion(tuple(assignments.values()), tuple(counts)), said


def _candidates(block: Block, cost: Price, purse: int) -> int | None:
    """Limit a block's candidates by what it may try, and by what is left to pay for it."""
    wished = bound(block)
    return None if wished is None else min(wished, cost.candidates + purse // cost.steps)


def _count(found: Explored, kept: int) -> BlockCount:
    places = range(len(found.block.space.constraints))
    return BlockCount(
        found.candidates,
        found.rejected,
        found.candidates - found.rejected - kept,
        tuple(found.rejections[place] for place in places),
        tuple(found.unasked[place] for place in places),
    )


def trials(sweep: Sweep, expansion: Expansion, program: Program) -> tuple[Trial, ...]:
    """Make the trials: each assignment with all its replicates, then the next. Raises SpecError."""
    digest = program.digest
    made = tuple(
        Trial(assignment, digest, replicate)
        for assignment in expansion.assignments
        for replicate in range(sweep.replicates)
    )
    if len({trial.id for trial in made}) < len(made):
        raise SpecError(tuple(_collisions(sweep, made)))
    return made


def _collisions(sweep: Sweep, made: tuple[Trial, ...]) -> Iterator[Problem]:
    first: dict[str, Trial] = {}
    for trial in made:
        other = first.setdefault(trial.id, trial)
        if other is not trial:
            both = f"{_shown(other)} and {_shown(trial)}"
            message = f"must give every trial an id of its own, got {trial.id} for {both}"
            hint = "change any value of one of them, or the command"
            yield Problem(sweep.path, 0, 0, "parameters", message, "trial-id-collision", hint)


def _shown(trial: Trial) -> str:
    return f"{dict(trial.assignment)!r} (replicate {trial.replicate})"
