"""Which trials infrastructure ended: by what the cluster said of their pods, or by exit codes that the spec names."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sweepledger.results.outcomes import Attempt, BatchRecords, evaluate
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.record import RAN_NOTHING, Record, Status, TrialResult
from sweepledger.structs.run_config import Infrastructure
from sweepledger.structs.trial import Trial

REASONS = frozenset({"refused-by-node", "image-not-pulled", "disrupted", "node-lost", "preempted"})
"""Reasons that only infrastructure has. A pod may be `evicted` for exceeding its own scratch space."""
START_FAILED = "start-failed"
"""The reason of a command that does not exist, too: it counts if no container started."""


def is_of_infrastructure(record: Record, infrastructure: Infrastructure) -> bool:
    """Return whether infrastructure ended an attempt, as far as its record says."""
    if record.status is not Status.FAILED or record.reason is None:
        return False
    if record.reason == START_FAILED:
        return record.ran == RAN_NOTHING
    return record.reason in REASONS or record.reason in {f"exit-{code}" for code in infrastructure.exit_codes}


def has_lost_attempt(
    lock: BatchLock, outcome: TrialResult, attempts: Sequence[Attempt], infrastructure: Infrastructure
) -> bool:
    """Return whether infrastructure took one of a trial's attempts, and its own failures have not used all others.

    A record that came late may have ended the trial all the same.
    """
    if outcome.status is Status.CANCELLED:
        return False
    lost = [one for one in attempts if is_of_infrastructure(one.record, infrastructure)]
    # The Job does not count disruptions, so they are no failures of its own.
    own = sum(
        one not in lost and one.status is not Status.EVICTED and not one.status.is_final for one in attempts
    )
    own += sum(one.record.others.failed for one in attempts if one.record.others is not None)
    return bool(lost) and own <= lock.run.retries


@dataclass(frozen=True)
class Losses:
    """What the recorded batches of a sweep say of the trials that infrastructure ended."""

    counts: Counter[str] = field(default_factory=Counter)
    """In how many batches infrastructure took an attempt, by digest of the trial."""
    last: dict[str, tuple[str, Record]] = field(default_factory=dict)
    """The last batch and record of such an attempt, by digest of the trial; only of unfinished trials."""

    @classmethod
    def of(
        cls, batches: Iterable[tuple[Sequence[Trial], BatchRecords]], infrastructure: Infrastructure
    ) -> "Losses":
        """Return the losses in recorded batches, by number: each with its trials, in the order of the table."""
        losses, final = cls(), set[str]()
        for trials, records in batches:
            judged = evaluate(records)
            for trial, outcome, attempts in zip(trials, judged.outcomes, judged.attempts, strict=True):
                if outcome.status.is_final:
                    final.add(trial.digest)
                if not has_lost_attempt(judged.lock, outcome, attempts, infrastructure):
                    losses.last.pop(trial.digest, None)  # what it failed of since counts
                    continue
                losses.counts[trial.digest] += 1
                losses.last[trial.digest] = (judged.lock.name, _last_loss(attempts, infrastructure))
        for digest in final:
            losses.last.pop(digest, None)
        return losses


def _last_loss(attempts: Sequence[Attempt], infrastructure: Infrastructure) -> Record:
    return next(
        attempt.record
        for attempt in reversed(attempts)
        if is_of_infrastructure(attempt.record, infrastructure)
    )
