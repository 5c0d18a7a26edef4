"""From blocks to one list of assignments, and from assignments to trials."""

from collections.abc import Mapping
from dataclasses import dataclass

from generator.errors import SpecError
from generator.problems import Problem
from generator.search.grid import grid
from generator.structs.program import Program
from generator.structs.sweep import Grid, Sweep
from generator.structs.trial import Trial
from generator.structs.values import Value

Assignment = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class BlockCount:
    """What became of a block's candidates, in this order; the rest was kept."""

    candidates: int
    """Combinations, draws or lines looked at."""
    rejected: int
    """By a constraint."""
    duplicates: int
    """Equal to an assignment before, of this block or another."""

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
    assignments: list[Assignment] = []
    for block in sweep.blocks:
        assert isinstance(block, Grid)
        assignments += grid(block.space)
    return Expansion(tuple(assignments), (BlockCount(len(assignments), 0, 0),))


def trials(sweep: Sweep, expansion: Expansion, program: Program) -> tuple[Trial, ...]:
    """Make the trials: each assignment with all its replicates, then the next. Raises SpecError."""
    digest = program.digest
    made = tuple(
        Trial(assignment, digest, replicate)
        for assignment in expansion.assignments
        for replicate in range(sweep.replicates)
    )
    if len({trial.id for trial in made}) < len(made):
        message = f"two trials of {sweep.name} share an id; change any value or the command"
        raise SpecError([Problem(sweep.path, 0, 0, "parameters", message, "trial-id-collision")])
    return made
