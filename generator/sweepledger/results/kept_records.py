"""Which records of a batch git keeps: at most two per trial, and the numbers of the others.

The deciding record stays, and the last other one, which shows how the trial went on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from sweepledger.formats.record_json import to_line
from sweepledger.results.outcomes import Attempt, BatchRecords, evaluate
from sweepledger.structs.record import LeftOutAttempts, Record, Status

NONE: Mapping[int, int] = MappingProxyType({})
NO_SECONDS: Mapping[int, float] = MappingProxyType({})


def kept(
    batch: BatchRecords,
    *,
    ignored: Mapping[int, int] = NONE,
    silent_seconds: Mapping[int, float] = NO_SECONDS,
) -> BatchRecords:
    """Return a batch with the records that git keeps. Applied twice, it changes nothing more.

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
    """Return the deciding record, with the numbers of what is left out, and the last other one."""
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
