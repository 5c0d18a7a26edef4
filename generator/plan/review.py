"""All that a reviewer of a sweep should see before the merge, as one value."""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from generator.plan.ahead import Ahead
from generator.plan.budgets import Balance
from generator.plan.coverage import Coverage
from generator.plan.difference import Difference, Unreadable
from generator.plan.evenness import Discrepancy
from generator.plan.forecast import Forecast
from generator.plan.outdated import Outdated
from generator.plan.room import SECONDS_AN_HOUR, Room, room
from generator.problems import Problem
from generator.structs.sweep import Run, Sweep
from generator.structs.trial import Trial

EDGE = 3
"""Trials shown of each end: enough to see which parameter varies fastest."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A sweep's trials by what the commit that stands holds of them."""

    new: int
    """In no batch."""
    running: int
    """In an active batch."""
    recorded: int
    """In archived batches only."""


def standing(trials: Sequence[Trial], *, active: AbstractSet[str], archived: AbstractSet[str]) -> Standing:
    """Count trials by the digests that standing batches list."""
    running = sum(trial.digest in active for trial in trials)
    known = sum(trial.digest in active or trial.digest in archived for trial in trials)
    return Standing(len(trials) - known, running, known - running)


@dataclass(frozen=True, slots=True)
class Cost:
    """The most that some trials can use up: every attempt of each lasts until its timeout."""

    trials: int
    hours: float
    """Of single trials, one after the other."""
    gpu_hours: float
    wall_hours: float
    """On the clock, with as many trials at a time as the spec wants."""


def cost(run: Run, trials: int) -> Cost:
    """Bound what trials can cost."""
    longest = run.timeout_seconds * (run.retries + 1) / SECONDS_AN_HOUR
    hours, rounds = trials * longest, math.ceil(trials / run.parallelism)
    return Cost(trials, hours, hours * run.resources.gpu * run.nodes, rounds * longest)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A constraint, and what it kept out."""

    text: str
    rejected: int
    """Candidates that it does not hold for; several constraints may reject one."""
    unasked: int = 0
    """Candidates that lack a value which it asks for, and so pass."""


@dataclass(frozen=True, slots=True)
class BlockReview:
    """What became of a block's candidates."""

    method: str
    candidates: int
    rejected: int
    duplicates: int
    kept: int
    constraints: tuple[Rejection, ...] = ()
    discrepancy: Discrepancy | None = None
    """Of quasi-random points."""

    @property
    def acceptance(self) -> float:
        """The share of candidates that satisfies the constraints."""
        return 1 - self.rejected / self.candidates if self.candidates else 0.0


@dataclass(frozen=True, slots=True)
class Note:
    """One remark; its kind is stable, its text is not."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Review:
    """A sweep before it is merged."""

    sweep: Sweep
    trials: tuple[Trial, ...]
    standing: Standing
    blocks: tuple[BlockReview, ...]
    coverage: Coverage
    difference: Difference | Unreadable
    problems: tuple[Problem, ...] = ()
    """What its author may want to know, and a program that is not there."""
    outdated: tuple[Outdated, ...] = ()
    """Of the locked program: new trials will not run what is there today."""
    unlocked: str | None = None
    """Why no program can be locked yet: until then no trial is known, and ids may change."""
    forecast: Forecast | None = None
    """Of the new trials; None where there are none."""
    balances: tuple[Balance, ...] = ()
    """Of the budgets that it counts towards."""
    notes: tuple[Note, ...] = ()
    """What is right, and may yet be overlooked."""
    batch: str | None = None
    """The batch that asks for them, where it is generated already."""
    ahead: Ahead | None = None
    """Of a search: what all its further rounds may ask for; those count as new."""

    @property
    def is_news(self) -> bool:
        """Tell whether merging it would change what is asked for."""
        settled = isinstance(self.difference, Difference) and self.difference.is_empty
        begun = self.ahead is not None and self.standing.running + self.standing.recorded > 0
        return (self.standing.new > 0 and not begun) or not settled or self.batch is not None

    @property
    def first(self) -> tuple[Trial, ...]:
        """The first few trials."""
        return self.trials[:EDGE]

    @property
    def last(self) -> tuple[Trial, ...]:
        """The last few, without those that are among the first."""
        return self.trials[max(EDGE, len(self.trials) - EDGE) :]

    @property
    def whole_cost(self) -> Cost:
        """The most that all trials can cost together."""
        stands = self.standing
        asked = len(self.trials) if self.ahead is None else stands.new + stands.running + stands.recorded
        return cost(self._run, asked)

    @property
    def new_cost(self) -> Cost:
        """The most that this merge can cost."""
        return cost(self._run, self.standing.new)

    @property
    def _run(self) -> Run:
        """How trials run; those of a round wait for the round before."""
        run = self.sweep.run
        at_once = run.parallelism if self.ahead is None else min(run.parallelism, self.ahead.size)
        return run if at_once == run.parallelism else replace(run, parallelism=max(1, at_once))

    @property
    def room(self) -> Room | None:
        """What the new trials take of their pool."""
        return room(self.sweep, self.standing.new)
