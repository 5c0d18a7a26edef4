"""Finished trials that no commit has yet: those of active batches on this machine's results volume."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from sweepledger.commands.collection.attempts import BatchAttempts
from sweepledger.errors import UnreadableError
from sweepledger.formats.summary_csv import SummaryRow
from sweepledger.repo.batches import StoredBatch
from sweepledger.results.outcomes import RANKS, EvaluatedBatch, evaluate
from sweepledger.structs.record import TrialResult


def evaluate_here(batch: StoredBatch, results: Path) -> EvaluatedBatch | None:
    """Return the results of an active batch on a machine's volume; None if it has none, as most run elsewhere."""
    if not (results / batch.name).is_dir():
        return None
    return evaluate(BatchAttempts.read(results, batch).results)


def finished(evaluated: EvaluatedBatch) -> Iterator[TrialResult]:
    """Yield the trials of an active batch that no further attempt follows."""
    for outcome, attempts in zip(evaluated.outcomes, evaluated.attempts, strict=True):
        # The launcher starts no attempt after a final record, even if the metric of that record is not usable.
        if len(attempts) > evaluated.lock.run.retries or any(one.record.status.is_final for one in attempts):
            yield outcome


def finished_here(stored: Iterable[StoredBatch], results: Path) -> tuple[TrialResult, ...]:
    """Return the finished trials of the active ones of some batches; none of a batch that cannot be read."""
    trials: list[TrialResult] = []
    for batch in stored:
        try:
            evaluated = evaluate_here(batch, results) if batch.is_active else None
        except UnreadableError:
            continue
        trials += () if evaluated is None else finished(evaluated)
    return tuple(trials)


def with_unrecorded(
    recorded: Iterable[SummaryRow], unrecorded: Iterable[TrialResult]
) -> tuple[tuple[SummaryRow, ...], frozenset[tuple[str, int]]]:
    """Return recorded rows, then those of results that are not recorded yet, and batch and index of the latter.

    A repeated trial is left out if its recorded result is as good.
    """
    rows = tuple(recorded)
    ranks = {(row.program, row.trial): RANKS[row.status] for row in rows}
    new = tuple(
        SummaryRow.of(one)
        for one in unrecorded
        if RANKS[one.status] < ranks.get((one.program, one.trial), len(RANKS))
    )
    return (*rows, *new), frozenset((row.batch, row.index) for row in new)
