"""The collector's own records: of trials whose files say nothing that can be believed.

Without them git would not tell such a trial from one that left nothing, and the summary could not be worked
out from git alone.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from generator.results.outcomes import PASSED_OVER, BatchResults, judge
from generator.structs.batch import Lock
from generator.structs.record import ExpectedTrial, Record, Status

COLLECTOR = "collector"
"""In place of a pod's uid: no pod vouches for it."""
NO_TIME = "1970-01-01T00:00:00Z"
NOTHING = "nothing"
"""What is known to have run."""


def substitutes(batch: BatchResults, passed_over: Mapping[int, Collection[str]]) -> Iterator[Record]:
    """Make a record of every trial of a batch that has none of its own, yet left something.

    `passed_over` says why files were not used, by row; records that are of no row are known already.
    """
    judged = judge(batch)
    foreign = Counter(record.index for record in batch.records)
    for trial, attempts in zip(judged.expected, judged.attempts, strict=True):
        if attempts:
            continue
        reasons = Counter(passed_over.get(trial.index, ()))
        reasons[Status.FOREIGN] += foreign[trial.index]
        if reasons.total():
            yield _record(batch.lock, trial, +reasons)


def _record(lock: Lock, trial: ExpectedTrial, reasons: Counter[str]) -> Record:
    data = lock.program.data
    return Record(
        trial=trial.trial,
        row=trial.row,
        batch=lock.name,
        index=trial.index,
        uid=COLLECTOR,
        attempt=min(reasons.total(), lock.retries + 1),
        status=Status.FAILED,
        reason=str(Status.FOREIGN if set(reasons) == {Status.FOREIGN} else Status.CORRUPT),
        metrics=MappingProxyType({}),
        seconds=0.0,
        started=NO_TIME,
        finished=NO_TIME,
        ran=NOTHING,
        code=lock.program.code.tree,
        data=None if data is None else data.digest,
        seed=lock.seed_base + trial.replicate,
        node=None,
        details=MappingProxyType({PASSED_OVER: {str(reason): count for reason, count in reasons.items()}}),
    )
