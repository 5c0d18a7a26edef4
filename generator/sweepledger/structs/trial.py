"""A trial, identified by its content and never by its position."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

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
