"""Trials that are to run, and how long each of them may take: drawn again and again, from what is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp
from random import Random

from generator.plan.durations import Durations, durations
from generator.plan.past import NOTHING, Past
from generator.structs.settings import Pool
from generator.structs.sweep import Run
from generator.structs.values import Value

SECONDS_A_MINUTE = 60
BACKOFF = 10
"""Seconds before a first retry in Kubernetes; doubled for each further one."""


class Source(StrEnum):
    """Where the time of a trial comes from."""

    RECORDS = "records"
    EXPECTED = "expected"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Asked:
    """Trials that are to run."""

    run: Run
    trials: Sequence[Mapping[str, Value] | None]
    """Their values, in the order in which they start; None for one whose values nobody knows yet."""
    pool: Pool | None = None
    past: Past = NOTHING
    """Of their program."""


@dataclass(frozen=True, slots=True)
class Times:
    """How long trials take, up to chance."""

    source: Source
    bases: tuple[float, ...]
    """Seconds of each, on average."""
    noise: tuple[float, ...] = (1.0,)
    """Factors, as likely as each other."""
    drift: float = 0.0
    """Standard deviation of the logarithm of a factor that all share."""
    past: Past = NOTHING
    records: int = 0
    by: tuple[str, ...] = ()
    """The parameters that time depends on."""

    def drawn(self, random: Random, *, shift: float) -> list[float]:
        """Draw the seconds of each trial's command; `shift` is how many deviations all of them are off."""
        shared = exp(self.drift * shift)
        if self.noise == (1.0,):
            return [base * shared for base in self.bases]
        factors = random.choices(self.noise, k=len(self.bases))
        return [base * shared * factor for base, factor in zip(self.bases, factors, strict=True)]

    def retried(self, random: Random, run: Run) -> dict[int, float]:
        """Draw which trials fail first, and how many seconds that costs them."""
        failing, found = self.past.failing, {}
        if not failing or not run.retries:
            return {}
        for place in range(len(self.bases)):
            lost, attempt = 0.0, 0
            while attempt < run.retries and random.random() < failing:
                lost += min(random.choice(self.past.broken), run.timeout_seconds) + BACKOFF * 2**attempt
                attempt += 1
            if lost:
                found[place] = lost
        return found

    def overhead(self, random: Random) -> float:
        """Draw what a place is idle for between two trials."""
        return random.choice(self.past.overheads) if self.past.overheads else 0.0


def times(asked: Asked) -> Times | str:
    """Find out how long trials take; or say why nobody knows."""
    learned = durations(asked.past)
    found = _recorded(asked, learned) if learned else "no trial of this program is recorded"
    if isinstance(found, Times):
        return found
    if learned is None and asked.past.ended:
        found = f"only {len(asked.past.ended)} of this program recorded"
    if asked.run.expected_minutes is not None:
        seconds = asked.run.expected_minutes * SECONDS_A_MINUTE
        return Times(Source.EXPECTED, (seconds,) * len(asked.trials))
    return found


def _recorded(asked: Asked, learned: Durations) -> Times | str:
    ended, bases = asked.past.ended, []
    for place, values in enumerate(asked.trials):
        # What is not chosen yet will be something like what was.
        assignment = ended[place % len(ended)].assignment if values is None else values
        seconds = learned.seconds(assignment)
        if seconds is None:
            name = learned.foreign(assignment) or ""
            return f"no recorded trial is like {name}={assignment.get(name)!r}"
        bases.append(seconds)
    by = tuple(effect.parameter for effect in learned.effects)
    return Times(Source.RECORDS, tuple(bases), learned.noise, learned.drift, asked.past, learned.records, by)
