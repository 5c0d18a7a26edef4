"""The records of a batch that git keeps, and the bounds on their size in the repository.

For each trial, git keeps the deciding record and the last other record, which shows later events; they have the
numbers of omitted records. Trials write their records: those that exceed a bound are omitted and counted by reason.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from sweepledger.formats.record_json import CURVES_LEFT_OUT, to_line
from sweepledger.formats.records_jsonl import line_size
from sweepledger.results.outcomes import Attempt, BatchRecords, evaluate
from sweepledger.structs.record import NO_CURVES, LeftOutAttempts, Record, Status

MOST_TRIAL_BYTES = 64 * 1024
"""Bytes of all records of one trial in git."""
BATCH_BYTES = 48_000_000
"""Bytes of all records of a batch in git: 50 MB with the first lines."""
LEAST_TRIAL_BYTES = 480
"""What every trial may have, however many there are: a usual record without curves and artifacts.

This is the share of a trial in the largest batch, of 100,000.
"""

ARTIFACTS_LEFT_OUT = "artifacts_left_out"
"""Member of a record's details: the number of artifacts that it does not list."""
LEFT_OUT = "left_out"
"""Member of a record's details: the members that did not fit."""


def trial_share(trials: int) -> int:
    """Return the bytes that each trial of a batch may use in git, independent of other trials."""
    return max(LEAST_TRIAL_BYTES, min(MOST_TRIAL_BYTES, BATCH_BYTES // max(trials, 1)))


def common_bound(sizes: Iterable[int], space: int) -> int:
    """Return the largest bound at which all sizes, cut to the bound, fit into the space."""
    rest = sorted(sizes)
    for place, size in enumerate(rest):
        bound = space // (len(rest) - place)
        if size > bound:
            return bound
        space -= size
    return rest[-1] if rest else space


def shortened(record: Record, bound: int, metric: str) -> Record | None:
    """Return a record of at most `bound` bytes; None if no part of it fits.

    It omits the curves of all metrics except this, then the last artifacts, the last curve, and the details.
    """
    if line_size(record) <= bound:
        return record
    if others := record.curves.keys() - {metric}:
        count = record.details.get(CURVES_LEFT_OUT, 0)
        left_out = len(others) + (count if type(count) is int else 0)
        record = replace(
            record,
            curves=MappingProxyType({name: record.curves[name] for name in record.curves.keys() & {metric}}),
            details=MappingProxyType({**record.details, CURVES_LEFT_OUT: left_out}),
        )
        if line_size(record) <= bound:
            return record
    lists = range(len(record.artifacts))  # by their length
    fitting = bisect_right(lists, bound, key=lambda kept: line_size(_cut(record, kept)))
    if fitting:
        return _cut(record, lists[fitting - 1])
    counted = _cut(record, 0) if record.artifacts else record
    count = {ARTIFACTS_LEFT_OUT: left_out} if (left_out := artifacts_left_out(counted)) else {}
    bare = replace(
        counted, curves=NO_CURVES, details=MappingProxyType({**counted.details, LEFT_OUT: ["curves"]})
    )
    barest = replace(bare, details=MappingProxyType({**count, LEFT_OUT: ["curves", "details"]}))
    return next((short for short in (bare, barest) if line_size(short) <= bound), None)


def _cut(record: Record, kept: int) -> Record:
    """Return a record with only its first artifacts, and the number of omitted artifacts."""
    count = artifacts_left_out(record) + len(record.artifacts) - kept
    details = MappingProxyType({**record.details, ARTIFACTS_LEFT_OUT: count})
    return replace(record, artifacts=record.artifacts[:kept], details=details)


def artifacts_left_out(record: Record) -> int:
    """Return the number of omitted artifacts that a record states."""
    count = record.details.get(ARTIFACTS_LEFT_OUT, 0)
    return count if type(count) is int else 0  # True is an int, and no count


def within_bound(attempts: Iterable[Attempt], bound: int) -> tuple[Attempt, ...]:
    """Return the attempts of one trial that fit: the deciding attempt, then the others, newest first."""
    ranked = sorted(attempts, key=lambda attempt: attempt.rank)
    newest = sorted(ranked[1:], key=lambda one: (one.record.attempt, one.record.finished), reverse=True)
    kept = []
    for attempt in (*ranked[:1], *newest):
        size = line_size(attempt.record)
        if size <= bound:
            bound -= size
            kept.append(attempt)
    return tuple(kept)


NONE: Mapping[int, int] = MappingProxyType({})
NO_SECONDS: Mapping[int, float] = MappingProxyType({})


def kept(
    batch: BatchRecords,
    *,
    ignored: Mapping[int, int] = NONE,
    silent_seconds: Mapping[int, float] = NO_SECONDS,
) -> BatchRecords:
    """Return a batch with the records that git keeps; idempotent.

    `ignored` has the numbers of files that were not used, `silent_seconds` how long pods without a record ran, by
    trial. Records that match no row stay, to be counted.
    """
    judged = evaluate(batch)
    records = [
        record
        for trial, attempts in zip(judged.expected, judged.attempts, strict=True)
        for record in _kept(attempts, ignored.get(trial.index, 0), silent_seconds.get(trial.index, 0.0))
    ]
    valid = {to_line(attempt.record) for attempts in judged.attempts for attempt in attempts}
    foreign = (record for record in batch.records if to_line(record) not in valid) if judged.foreign else ()
    return replace(batch, records=(*records, *foreign))


def _kept(attempts: Sequence[Attempt], ignored: int, seconds: float) -> list[Record]:
    """Return the deciding record, with the numbers of omitted records, and the last other record."""
    if not attempts:
        return []
    deciding = min(attempts, key=lambda attempt: attempt.rank)
    others = [attempt for attempt in attempts if attempt is not deciding]
    left_out, last = others[:-1], others[-1:]
    disrupted = sum(attempt.status is Status.EVICTED for attempt in left_out)
    before = [attempt.record.others for attempt in attempts if attempt.record.others is not None]
    took = [
        seconds,
        *(attempt.record.charged_seconds for attempt in left_out),
        *(one.seconds for one in before),
    ]
    numbers = LeftOutAttempts(
        failed=len(left_out) - disrupted + sum(one.failed for one in before),
        disrupted=disrupted + sum(one.disrupted for one in before),
        ignored=ignored + sum(one.ignored for one in before),
        seconds=round(sum(took), 3),
    )
    counted = replace(deciding.record, others=None if numbers == LeftOutAttempts() else numbers)
    return [counted, *(replace(attempt.record, others=None) for attempt in last)]
