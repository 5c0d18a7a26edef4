"""Review: everything that a reviewer of a sweep should see before the merge, as one value."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sweepledger.plan.budgets import Balance
from sweepledger.plan.changes import CodeChange, Difference, OutdatedPart, UnreadableSpec
from sweepledger.plan.coverage import Coverage, Discrepancy
from sweepledger.plan.forecast import Forecast
from sweepledger.plan.upper_bounds import Cost, PodDisk, PoolUsage, RoundBounds, cost, pool_usage
from sweepledger.problems import Problem
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial

EDGE_TRIALS = 3
"""Trials shown at each end: enough to see which parameter varies fastest."""


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """A sweep's trials by the batches at the base commit that list them."""

    new: int
    """Trials that no batch lists."""
    running: int
    """Trials of active batches."""
    recorded: int
    """Trials of archived batches only."""


def count_trials(
    trials: Sequence[Trial], *, active: AbstractSet[str], archived: AbstractSet[str]
) -> TrialCounts:
    """Count trials by the digests that merged batches list."""
    running = sum(trial.digest in active for trial in trials)
    known = sum(trial.digest in active or trial.digest in archived for trial in trials)
    return TrialCounts(len(trials) - known, running, known - running)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A constraint, and how many candidates it rejects."""

    text: str
    rejected: int
    """Candidates that it rejects; several constraints may reject the same one."""
    unevaluated: int = 0
    """Candidates that lack a value that it needs, and therefore satisfy it."""


@dataclass(frozen=True, slots=True)
class DesignReview:
    """How many candidates are rejected, duplicates or kept."""

    method: str
    candidates: int
    rejected: int
    duplicates: int
    kept: int
    constraints: tuple[Rejection, ...] = ()
    discrepancy: Discrepancy | None = None
    """Only for quasi-random points."""

    @property
    def acceptance(self) -> float:
        """The share of candidates that satisfies the constraints."""
        return 1 - self.rejected / self.candidates if self.candidates else 0.0


@dataclass(frozen=True, slots=True)
class Note:
    """A remark for reviewers; its kind is stable, its text is not."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Review:
    """What a reviewer should know of a sweep before the merge."""

    sweep: Sweep
    trials: tuple[Trial, ...]
    counts: TrialCounts
    design: DesignReview
    coverage: Coverage
    difference: Difference | UnreadableSpec
    problems: tuple[Problem, ...] = ()
    """Warnings, and a missing program."""
    outdated: tuple[OutdatedPart, ...] = ()
    """Outdated parts of the locked program: new trials will not run the current ones."""
    code: tuple[CodeChange, ...] = ()
    """What new trials run beside the last merged batch, and what the last commit has beside the lock."""
    unlocked: str | None = None
    """Why no program can be locked yet: until then all trials count as new, and ids may change."""
    forecast: Forecast | None = None
    """Forecast of the new trials; None if there are none."""
    balances: tuple[Balance, ...] = ()
    """Balances of the budgets that it counts towards."""
    notes: tuple[Note, ...] = ()
    """Facts that a reviewer may overlook."""
    batch: str | None = None
    """The new batch that lists the new trials, if it is generated already."""
    further_rounds: RoundBounds | None = None
    """Bounds of all further rounds of a search, whose trials count as new; None for static methods."""
    cluster: str | None = None
    """Where its next batch would run; None: in the only cluster, or in none."""
    disk: PodDisk | None = None
    """What its pods need; None while no program can be locked, or without new trials."""

    @property
    def is_change(self) -> bool:
        """Whether merging it would change the requested trials."""
        is_unchanged = isinstance(self.difference, Difference) and self.difference.is_empty
        has_begun = self.further_rounds is not None and self.counts.running + self.counts.recorded > 0
        return (self.counts.new > 0 and not has_begun) or not is_unchanged or self.batch is not None

    @property
    def first(self) -> tuple[Trial, ...]:
        """The first few trials."""
        return self.trials[:EDGE_TRIALS]

    @property
    def last(self) -> tuple[Trial, ...]:
        """The last few trials, without those that are among the first."""
        return self.trials[max(EDGE_TRIALS, len(self.trials) - EDGE_TRIALS) :]

    @property
    def whole_cost(self) -> Cost:
        """Upper bound for all trials."""
        counts = self.counts
        is_static = self.further_rounds is None
        trials = len(self.trials) if is_static else counts.new + counts.running + counts.recorded
        return cost(self._run, self.sweep.pool, trials)

    @property
    def new_cost(self) -> Cost:
        """Upper bound for the trials that this merge adds."""
        return cost(self._run, self.sweep.pool, self.counts.new)

    @property
    def _run(self) -> RunConfig:
        """How trials run: in a search, those of the rounds that may overlap."""
        run = self.sweep.run
        at_once = run.parallelism
        if self.further_rounds is not None:
            at_once = self.further_rounds.trials_at_once(run.parallelism)
        return run if at_once == run.parallelism else replace(run, parallelism=max(1, at_once))

    @property
    def pool_usage(self) -> PoolUsage | None:
        """The nodes that the new trials use in their pool."""
        return pool_usage(self.sweep, self.counts.new)


@dataclass(frozen=True)
class Planned:
    """The reviews of all requested sweeps."""

    base: str | None
    """The base commit; None in a repository without commits."""
    reviews: tuple[Review, ...]
    unchanged: tuple[str, ...]
    """Sweeps that a merge would not change."""
    problems: tuple[Problem, ...] = ()
    """Problems of specs; a wrong spec does not hide the others."""
    currency: str = ""
    """The currency of prices."""
    month: str = ""
    """The month of the budgets."""
