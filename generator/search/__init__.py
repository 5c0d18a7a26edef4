"""A sweep in, its trials out: one module a method, deterministic, numbered by position."""

from generator.search.grid import grid
from generator.structs.program import Program
from generator.structs.sweep import Sweep
from generator.structs.trial import Trial


def expand(sweep: Sweep, program: Program) -> tuple[Trial, ...]:
    """List the trials a spec asks for under a program. Raises ValueError if two ids collide."""
    runs = program.digest
    trials = tuple(Trial(assignment, runs) for assignment in grid(sweep.space))
    if len({trial.id for trial in trials}) < len(trials):
        raise ValueError(f"two trials of {sweep.name} share an id; change any value or the command")
    return trials
