"""The rules by which a launcher ends a trial before its time: numbers only, nothing left to work out."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """At each of some steps, what a trial must have reached; it is pruned where it has not."""

    rule: str
    """What they were worked out by, and the record's reason: `median`, `percentile` or `hyperband`."""
    points: tuple[tuple[int, float], ...]
    """Step and value, in the order of steps."""
    of_last: bool = False
    """Whether the value at the step counts, not the best one up to it."""


@dataclass(frozen=True, slots=True)
class Patience:
    """So many reports without a better value end a trial well: it came as far as it was going to."""

    reports: int
    margin: float = 0.0
    """By how much a value must be better to count."""
    first: int = 1
    """The step before which nothing is ended."""
    last: int | None = None
    """The step after which nothing is; None: no such step."""


@dataclass(frozen=True, slots=True)
class Reach:
    """A value that is good enough ends a trial well."""

    value: float
    first: int = 1
    """The step before which nothing is ended."""


StopRule = Thresholds | Patience | Reach
