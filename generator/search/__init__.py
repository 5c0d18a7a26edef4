"""A sweep in, its trials out: deterministic, and in the order in which the table lists them."""

from generator.errors import SpecError
from generator.search.expansion import BlockCount, Expansion, explore, trials
from generator.search.settling import Assignment
from generator.structs.program import Program
from generator.structs.sweep import Sweep
from generator.structs.trial import Trial

__all__ = ["Assignment", "BlockCount", "Expansion", "expand", "explore", "trials"]


def expand(sweep: Sweep, program: Program) -> tuple[Trial, ...]:
    """List the trials a spec asks for under a program. Raises SpecError."""
    found = explore(sweep)
    if not isinstance(found, Expansion):
        raise SpecError(found)
    return trials(sweep, found, program)
