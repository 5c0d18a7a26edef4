"""The rounds of a search and its rungs: what each asked for, cost, found and kept."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from generator.results.outcomes import JudgedBatch
from generator.results.summary import Summary
from generator.structs.record import Outcome, Status


@dataclass(frozen=True, slots=True)
class Shared:
    """What became of trials that are told of together."""

    trials: int
    ok: int
    pruned: int
    seconds: float
    best: float | None
    kept: int | None
    """Trials from which later ones go on; None in searches without."""


@dataclass(frozen=True, slots=True)
class Rounded:
    """A round as a line of the README."""

    number: int
    engine: str
    amounts: tuple[int, ...]
    """Of the resource, the least first; none in searches without."""
    shared: Shared
    is_record: bool
    """Whether its best is better than all rounds before."""


@dataclass(frozen=True, slots=True)
class Rung:
    """All trials that get the same amount of the resource, whatever their rounds."""

    amount: int
    shared: Shared


def rounds(summary: Summary) -> tuple[Rounded, ...]:
    """List the rounds of the newest program; none where the sweep is no search."""
    return tuple(_rounded(summary, _batches(summary)))


def rungs(summary: Summary) -> tuple[Rung, ...]:
    """List the rungs of a search whose rounds have several of them; of others the rounds say all."""
    batches = _batches(summary)
    if all(len(_by_amount(summary, batch.outcomes)) <= 1 for batch in batches):
        return ()
    current = [one for one in summary.outcomes if summary.is_current(one)]
    parents = _parents(batches)
    found = _by_amount(summary, current)
    return tuple(Rung(amount, _shared(summary, found[amount], parents)) for amount in sorted(found))


def _batches(summary: Summary) -> list[JudgedBatch]:
    return [
        batch
        for batch in summary.batches
        if batch.lock.round is not None and batch.lock.program.digest == summary.program
    ]


def _parents(batches: Iterable[JudgedBatch]) -> set[str]:
    return {trial for batch in batches for trial in batch.lock.parents.values()}


def _rounded(summary: Summary, batches: Sequence[JudgedBatch]) -> Iterator[Rounded]:
    parents, so_far = _parents(batches), None
    for batch in batches:
        shared = _shared(summary, batch.outcomes, parents)
        best = shared.best
        is_record = best is not None and (so_far is None or summary.metric.better(best, so_far))
        so_far = best if is_record else so_far
        assert batch.lock.round is not None
        amounts = tuple(sorted(_by_amount(summary, batch.outcomes)))
        yield Rounded(batch.lock.round, batch.lock.engine or "", amounts, shared, is_record)


def _by_amount(summary: Summary, outcomes: Iterable[Outcome]) -> dict[int, list[Outcome]]:
    """Sort trials by what they got; those of an earlier spec may have got nothing of today's resource."""
    found: dict[int, list[Outcome]] = {}
    for one in outcomes:
        amount = one.assignment.get(summary.resource or "")
        if isinstance(amount, int) and not isinstance(amount, bool):
            found.setdefault(amount, []).append(one)
    return found


def _shared(summary: Summary, outcomes: Sequence[Outcome], parents: set[str]) -> Shared:
    best: float | None = None
    for value in (one.metric(summary.metric.name) for one in outcomes):
        if value is not None and (best is None or summary.metric.better(value, best)):
            best = value
    return Shared(
        trials=len(outcomes),
        ok=sum(one.status is Status.OK for one in outcomes),
        pruned=sum(one.status is Status.PRUNED for one in outcomes),
        seconds=sum(one.record.seconds for one in outcomes if one.record is not None),
        best=best,
        kept=sum(one.trial in parents for one in outcomes) if parents else None,
    )
