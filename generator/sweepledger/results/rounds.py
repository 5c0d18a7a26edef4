"""The rounds and rungs of a search, as rows of the README: trials, computing time, best value, continued trials."""

from collections.abc import Iterable, Sequence
from typing import Any

from sweepledger.results import display
from sweepledger.results.outcomes import EvaluatedBatch
from sweepledger.results.summary import Summary
from sweepledger.structs.record import Status, TrialResult


def rounds(summary: Summary) -> list[dict[str, Any]]:
    """Return a row for each round of the newest program; none for a static sweep."""
    batches, rows, so_far = _batches(summary), [], None
    parents = _parents(batches)
    for batch in batches:
        best = _best(summary, batch.outcomes)
        is_record = best is not None and (so_far is None or summary.metric.better(best, so_far))
        so_far = best if is_record else so_far
        row = {
            "number": batch.lock.round,
            "engine": batch.lock.engine or "",
            "amounts": ", ".join(map(str, sorted(_by_amount(summary, batch.outcomes)))),
            "is_record": is_record,
        }
        rows.append(row | _totals(summary, batch.outcomes, parents))
    return rows


def rungs(summary: Summary) -> list[dict[str, Any]]:
    """Return a row for all trials with one amount of the resource, of any round; none if each round is one rung."""
    batches = _batches(summary)
    if all(len(_by_amount(summary, batch.outcomes)) <= 1 for batch in batches):
        return []
    trials = _by_amount(summary, filter(summary.is_current, summary.outcomes))
    parents = _parents(batches)
    return [{"amount": amount, **_totals(summary, trials[amount], parents)} for amount in sorted(trials)]


def _batches(summary: Summary) -> list[EvaluatedBatch]:
    return [
        batch
        for batch in summary.batches
        if batch.lock.round is not None and batch.lock.program.digest == summary.program
    ]


def _parents(batches: Iterable[EvaluatedBatch]) -> set[str]:
    return {trial for batch in batches for trial in batch.lock.parents.values()}


def _by_amount(summary: Summary, outcomes: Iterable[TrialResult]) -> dict[int, list[TrialResult]]:
    """Return trials by amount of the resource; trials of an earlier spec may have none."""
    trials: dict[int, list[TrialResult]] = {}
    for one in outcomes:
        amount = one.assignment.get(summary.resource or "")
        if isinstance(amount, int) and not isinstance(amount, bool):
            trials.setdefault(amount, []).append(one)
    return trials


def _best(summary: Summary, outcomes: Iterable[TrialResult]) -> float | None:
    values = (one.metric(summary.metric.name) for one in outcomes)
    return min((value for value in values if value is not None), key=summary.metric.sort_key, default=None)


def _totals(summary: Summary, outcomes: Sequence[TrialResult], parents: set[str]) -> dict[str, Any]:
    """Return what rounds and rungs show alike; `kept` trials are continued by later ones."""
    best = _best(summary, outcomes)
    return {
        "trials": len(outcomes),
        "ok": sum(one.status is Status.OK for one in outcomes),
        "pruned": sum(one.status is Status.PRUNED for one in outcomes),
        "seconds": display.format_duration(sum(one.record.seconds for one in outcomes if one.record)),
        "best": "" if best is None else display.format_number(best),
        "kept": str(sum(one.trial in parents for one in outcomes)) if parents else "",
    }
