"""`provenance.json`: where every number of a sweep came from."""

from typing import Any

from generator.results.outcomes import Attempt, JudgedBatch
from generator.results.summary import Summary
from generator.structs.record import Outcome, Status
from generator.structs.values import bytes_digest

PROVENANCE_FILE = "provenance.json"
TOLD = ("data_digest", "device", "versions")
"""What a trial may say of itself that a later reader needs; the records hold all else it said."""


def provenance(summary: Summary) -> dict[str, Any]:
    """Give the provenance of every batch and trial as JSON data."""
    return {
        "version": 1,
        "generated": "by `sweep collect` from git alone; do not edit",
        "sweep": summary.sweep,
        "metric": {"name": summary.metric.name, "goal": str(summary.metric.goal)},
        "spec": {"path": summary.lock.spec_path, "digest": summary.spec_digest},
        "inputs_digest": summary.inputs_digest,
        "batches": {batch.lock.name: _batch(batch) for batch in summary.batches},
    }


def _batch(batch: JudgedBatch) -> dict[str, Any]:
    lock = batch.lock
    statuses = [outcome.status for outcome in batch.outcomes]
    return {
        "number": lock.number,
        "parent": lock.parent,
        "digest": lock.digest,
        "spec": {"path": lock.spec_path, "digest": lock.spec_digest},
        "program": {**lock.program.as_data(), "digest": lock.program.digest},
        "generator": lock.generator,
        "seed_base": lock.seed_base,
        "counts": {str(status): statuses.count(status) for status in Status},
        "trials": [
            _trial(outcome, expected.row, attempts)
            for outcome, expected, attempts in zip(
                batch.outcomes, batch.expected, batch.attempts, strict=True
            )
        ],
    }


def _trial(outcome: Outcome, row: str, attempts: tuple[Attempt, ...]) -> dict[str, Any]:
    record = outcome.record
    data: dict[str, Any] = {
        "trial": outcome.trial,
        "batch": outcome.batch,
        "index": outcome.index,
        "row": row,
        "code": outcome.code,
        "data": outcome.data,
        "status": str(outcome.status),
        "reason": outcome.reason,
        # So that an edit names its record even where history has lost what stood there before.
        "attempts": [_attempt(attempt) for attempt in attempts],
    }
    if record is None:
        return data
    told = {name: record.details[name] for name in TOLD if name in record.details}
    return {**data, "uid": record.uid, "ran": record.ran, "seed": record.seed, **told}


def _attempt(attempt: Attempt) -> dict[str, Any]:
    record = attempt.record
    return {
        "attempt": record.attempt,
        "uid": record.uid,
        "node": record.node,
        "record": bytes_digest(attempt.line.encode()),
    }
