"""A trial, known by its content and never by its position."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from generator.structs.values import Value, digest

ID_DIGITS = 11
"""Hex digits after the `t`: 44 bits, so a sweep of 100,000 trials collides once in 3,500.

For display and file names only; sameness is decided by the whole digest."""


@dataclass(frozen=True)
class Trial:
    """One training to be done."""

    assignment: Mapping[str, Value]
    program_digest: str
    replicate: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "assignment", MappingProxyType(dict(self.assignment)))

    @cached_property
    def digest(self) -> str:
        """SHA-256 over assignment, replicate and program: the trial's identity."""
        return digest([dict(self.assignment), self.replicate, self.program_digest])

    @property
    def id(self) -> str:
        """Name the trial for people: `t` keeps every YAML reader from taking it for a number."""
        return trial_id(self.digest)


def trial_id(digest_of_trial: str) -> str:
    """Shorten a trial's digest to the id that people see."""
    return "t" + digest_of_trial[:ID_DIGITS]
