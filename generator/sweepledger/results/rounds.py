"""The rounds and rungs of a search: trials, computing time, best value, and continued trials of each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sweepledger.results.outcomes import EvaluatedBatch
from sweepledger.results.summary import Summary
from sweepledger.structs.record import Status, TrialResult


@dataclass(frozen=True, slots=True)
class TrialTotals:
    """Totals of a group of trials."""

    trials: int
    ok: int
    pruned: int
    seconds: float
    best: float | None
    kept: int | None
    """Trials that later ones continue; None in searches without parents."""


@dataclass(frozen=True, slots=True)
class RoundSummary:
    """A round as a row of the README."""

    number: int
    engine: str
    amounts: tuple[int, ...]
    """Amounts of the resource, ascending; empty in searches without a resource."""
    shared: TrialTotals
    is_record: bool
    """Whether its best value is better than those of all earlier rounds."""


@dataclass(frozen=True, slots=True)
class RungSummary:
    """All trials with the same amount of the resource, of any round."""

    amount: int
    shared: TrialTotals


def rounds(summary: Summary) -> tuple[RoundSummary, ...]:
    """Return the rounds of the newest program; empty for a static sweep."""
    return tuple(_round_summaries(summary, _batches(summary)))


def rungs(summary: Summary) -> tuple[RungSummary, ...]:
    """Return the rungs of a search whose rounds have several; empty if each round is one rung."""
    batches = _batches(summary)
    if all(len(_by_amount(summary, batch.outcomes)) <= 1 for batch in batches):
        return ()
    current = [one for one in summary.outcomes if summary.is_current(one)]
    parents = _parents(batches)
    trials = _by_amount(summary, current)
    return tuple(RungSummary(amount, _totals(summary, trials[amount], parents)) for amount in sorted(trials))


def _batches(summary: Summary) -> list[EvaluatedBatch]:
    return [
        batch
        for batch in summary.batches
        if batch.lock.round is not None and batch.lock.program.digest == summary.program
    ]


def _parents(batches: Iterable[EvaluatedBatch]) -> set[str]:
    return {trial for batch in batches for trial in batch.lock.parents.values()}


def _round_summaries(summary: Summary, batches: Sequence[EvaluatedBatch]) -> Iterator[RoundSummary]:
    parents, so_far = _parents(batches), None
    for batch in batches:
        shared = _totals(summary, batch.outcomes, parents)
        best = shared.best
        is_record = best is not None and (so_far is None or summary.metric.better(best, so_far))
        so_far = best if is_record else so_far
        assert batch.lock.round is not None
        amounts = tuple(sorted(_by_amount(summary, batch.outcomes)))
        yield RoundSummary(batch.lock.round, batch.lock.engine or "", amounts, shared, is_record)


def _by_amount(summary: Summary, outcomes: Iterable[TrialResult]) -> dict[int, list[TrialResult]]:
    """Return trials by amount of the resource; trials of an earlier spec may have none."""
    trials: dict[int, list[TrialResult]] = {}
    for one in outcomes:
        amount = one.assignment.get(summary.resource or "")
        if isinstance(amount, int) and not isinstance(amount, bool):
            trials.setdefault(amount, []).append(one)
    return trials


def _totals(summary: Summary, outcomes: Sequence[TrialResult], parents: set[str]) -> TrialTotals:
    best: float | None = None
    for value in (one.metric(summary.metric.name) for one in outcomes):
        if value is not None and (best is None or summary.metric.better(value, best)):
            best = value
    return TrialTotals(
        trials=len(outcomes),
        ok=sum(one.status is Status.OK for one in outcomes),
        pruned=sum(one.status is Status.PRUNED for one in outcomes),
        seconds=sum(one.record.seconds for one in outcomes if one.record is not None),
        best=best,
        kept=sum(one.trial in parents for one in outcomes) if parents else None,
    )
