"""What a spec says beside its search: files of the code that it names, and batches to ask for once more."""

from dataclasses import dataclass

from generator.problems import Place, Severity
from generator.structs.record import UNFINISHED, Status


@dataclass(frozen=True, slots=True)
class Script:
    """A file of the code that a spec names: whether it is there is known when the code is looked at."""

    path: str
    """Relative to the folder of the code."""
    place: Place
    severity: Severity
    """Of its absence: what the key program names must be there, an argument may only look like a path."""
    is_inside: bool = True
    """False: the command names it as if it lay beside the folder of the code, where a trial has nothing."""


@dataclass(frozen=True, slots=True)
class Retry:
    """A batch some of whose trials are asked for once more."""

    batch: str
    statuses: frozenset[Status] = UNFINISHED
    """Trials that ended so."""
