"""The rounds and rungs of a search, as rows of the README: trials, computing time, best value, continued trials.

Also an estimate of the computing time that early stopping saved.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    """Return a row for each amount of the resource, over all rounds; none if each round is one rung."""
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
    """Return the columns that rounds and rungs share; later trials continue `kept` trials."""
    best = _best(summary, outcomes)
    return {
        "trials": len(outcomes),
        "ok": sum(one.status is Status.OK for one in outcomes),
        "pruned": sum(one.status is Status.PRUNED for one in outcomes),
        "seconds": display.format_duration(sum(one.record.seconds for one in outcomes if one.record)),
        "best": "" if best is None else display.format_number(best),
        "kept": str(sum(one.trial in parents for one in outcomes)) if parents else "",
    }


GOOD_ENDS = ("patience", "target")
"""Rules that end a trial with the status ok."""
EARLY = "stopped_early"
"""Key in the details of a record, written by the launcher: the rule and the step."""


@dataclass(frozen=True, slots=True)
class EarlyStopping:
    """Trials that a rule stopped early, and the estimated saving."""

    rules: Mapping[str, int]
    """Number of trials by rule; rules that prune come first."""
    whole: int | None
    """Median number of steps of the trials that ran to the end; None if none did."""
    steps: int
    """Steps that these trials would have taken in addition."""
    seconds: float
    """Their duration, at each trial's own pace."""


def early_stopping(outcomes: Iterable[TrialResult], compared: str) -> EarlyStopping | None:
    """Return the estimate from the steps of a metric; None if no trial was stopped early."""
    listed = [one for one in outcomes if one.record is not None]
    ended = [one for one in listed if _rule(one)]
    if not ended:
        return None
    lengths = [_steps(one, compared) for one in listed if one.status is Status.OK and not _rule(one)]
    whole = statistics.median_low([steps for steps in lengths if steps]) if any(lengths) else None
    steps, seconds = 0, 0.0
    for one in ended:
        own = _steps(one, compared)
        if whole is not None and own and one.record is not None and whole > own:
            steps += whole - own
            seconds += one.record.seconds * (whole / own - 1)
    rules = Counter((one.status is not Status.PRUNED, _rule(one)) for one in ended)
    return EarlyStopping(
        {rule: rules[key] for key in sorted(rules) for rule in [key[1]]}, whole, steps, seconds
    )


def _steps(outcome: TrialResult, compared: str) -> int:
    """Return the last step at which a trial reported a metric; 0 if it reported none."""
    points = outcome.record.curve(compared) if outcome.record is not None else ()
    return points[-1][0] if points else 0


def _rule(outcome: TrialResult) -> str:
    """Return the rule that stopped a trial early; empty if none did. Details are untrusted: only known names count."""
    if outcome.status is Status.PRUNED:
        return outcome.reason or str(Status.PRUNED)
    details = outcome.record.details.get(EARLY) if outcome.record is not None else None
    rule = details.get("rule") if isinstance(details, Mapping) else None
    return next((known for known in GOOD_ENDS if known == rule), "") if outcome.status is Status.OK else ""
