"""A trial, identified by its content and never by its position."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sweepledger.errors import SpecError
from sweepledger.problems import Problem
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, digest

ID_DIGITS = 11
"""Hex digits after the `t`: 44 bits, so a sweep of 100,000 trials collides once in 3,500.

For display and file names only; trials are compared by the whole digest."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One execution of a program with a configuration."""

    assignment: Mapping[str, Value]
    program_digest: str
    replicate: int = 0
    digest: str = field(init=False)
    """SHA-256 over configuration, replicate and program: the trial's identity."""

    def __post_init__(self) -> None:
        if not isinstance(self.assignment, MappingProxyType):
            object.__setattr__(self, "assignment", MappingProxyType(dict(self.assignment)))
        identity = [self.assignment, self.replicate, self.program_digest]
        object.__setattr__(self, "digest", digest(identity))

    @property
    def id(self) -> str:
        """The trial id. Its `t` prevents YAML readers from reading a number."""
        return trial_id(self.digest)


def trial_id(digest_of_trial: str) -> str:
    """Return the trial id for a trial's digest."""
    return "t" + digest_of_trial[:ID_DIGITS]


def all_trials(
    sweep: Sweep, configurations: Iterable[Mapping[str, Value]], program: str
) -> tuple[Trial, ...]:
    """Return the trials: each configuration with all its replicates, then the next. Raises SpecError."""
    made = tuple(
        Trial(configuration, program, replicate)
        for configuration in configurations
        for replicate in range(sweep.replicates)
    )
    first: dict[str, Trial] = {}
    problems = []
    for trial in made:
        other = first.setdefault(trial.id, trial)
        if other is not trial:
            both = (f"{dict(each.assignment)!r} (replicate {each.replicate})" for each in (other, trial))
            message = f"must give every trial its own id, got {trial.id} for {' and '.join(both)}"
            hint = "change any value of one of them, or the command"
            problems.append(Problem(sweep.path, 0, 0, "parameters", message, "trial-id-collision", hint))
    if problems:
        raise SpecError(tuple(problems))
    return made
