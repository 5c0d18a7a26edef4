"""The rounds of a search: what each asked for, what it cost, what it found, and what it kept."""

from collections.abc import Iterator
from dataclasses import dataclass

from generator.results.outcomes import JudgedBatch
from generator.results.summary import Summary
from generator.structs.record import Status


@dataclass(frozen=True, slots=True)
class Rounded:
    """A round as a line of the README."""

    number: int
    engine: str
    trials: int
    ok: int
    pruned: int
    seconds: float
    best: float | None
    """Of the round."""
    is_record: bool
    """Whether that is better than all rounds before."""
    kept: int | None
    """Trials from which later ones go on; None in searches without."""


def rounds(summary: Summary) -> tuple[Rounded, ...]:
    """List the rounds of the newest program; none where the sweep is no search."""
    batches = [
        batch
        for batch in summary.batches
        if batch.lock.round is not None and batch.lock.program.digest == summary.program
    ]
    parents = {trial for batch in batches for trial in batch.lock.parents.values()}
    return tuple(_rounded(summary, batches, parents))


def _rounded(summary: Summary, batches: list[JudgedBatch], parents: set[str]) -> Iterator[Rounded]:
    name, so_far = summary.metric.name, None
    for batch in batches:
        found = [value for one in batch.outcomes if (value := one.metric(name)) is not None]
        best = found[0] if found else None
        for value in found:
            best = value if best is None or summary.metric.better(value, best) else best
        is_record = best is not None and (so_far is None or summary.metric.better(best, so_far))
        so_far = best if is_record else so_far
        assert batch.lock.round is not None
        yield Rounded(
            number=batch.lock.round,
            engine=batch.lock.engine or "",
            trials=len(batch.outcomes),
            ok=sum(one.status is Status.OK for one in batch.outcomes),
            pruned=sum(one.status is Status.PRUNED for one in batch.outcomes),
            seconds=sum(one.record.seconds for one in batch.outcomes if one.record is not None),
            best=best,
            is_record=is_record,
            kept=sum(one.trial in parents for one in batch.outcomes) if parents else None,
        )
