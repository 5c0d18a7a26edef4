"""Which trials infrastructure ended, for any sequence of endings of their attempts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.results.outcomes import BatchRecords, Losses, is_of_infrastructure
from sweepledger.structs.record import LeftOutAttempts, Record, Status
from sweepledger.structs.run_config import Infrastructure
from sweepledger.structs.trial import Trial
from tests.builders import a_lock, a_record, an_expected_trial

ENDINGS = {
    "refused": {"status": Status.FAILED, "reason": "refused-by-node", "ran": "nothing", "metrics": {}},
    "gpu": {"status": Status.FAILED, "reason": "exit-91", "metrics": {}},
    "fails": {"status": Status.FAILED, "reason": "exit-7", "metrics": {}},
    "preempted": {"status": Status.FAILED, "reason": "preempted", "metrics": {}},
    "diverged": {"status": Status.DIVERGED, "reason": "bad-hyperparameters", "metrics": {}},
    "ok": {},
}
FINAL = {"ok", "diverged"}
LOST = {"refused", "gpu", "preempted"}
TRIAL = Trial({"x": 1}, "p" * 64)


def attempt(batch: str, number: int, ending: str) -> Record:
    time = f"2026-01-01T00:{number:02d}:00Z"
    changes: dict[str, Any] = {"started": time, "finished": time, "uid": f"pod-{number}", **ENDINGS[ending]}
    return a_record(batch=batch, attempt=number, **changes)


def recorded(number: int, endings: Sequence[str], *, retries: int) -> tuple[Sequence[Trial], BatchRecords]:
    lock = a_lock(name=f"mnist-grid-b{number}-3f9a1c2e", number=number, trials=1, retries=retries)
    records = tuple(attempt(lock.name, place, ending) for place, ending in enumerate(endings, start=1))
    return [TRIAL], BatchRecords(lock, (an_expected_trial(),), records)


@given(
    st.lists(st.lists(st.sampled_from(sorted(ENDINGS)), max_size=4), min_size=1, max_size=8),
    st.integers(0, 3),
    st.integers(0, 2),
)
def test_a_trial_is_repeated_within_the_bound(batches: list[list[str]], bound: int, retries: int) -> None:
    infrastructure = Infrastructure(bound, (91,))
    requested: list[tuple[Sequence[Trial], BatchRecords]] = []
    for number, endings in enumerate(batches, start=1):
        requested.append(recorded(number, endings, retries=retries))
        losses = Losses.of(requested, infrastructure)
        is_repeated = TRIAL.digest in losses.last and losses.counts[TRIAL.digest] <= bound

        ended = {ending for _, records in requested for ending in names(records)}
        assert not (is_repeated and ended & FINAL)
        assert not is_repeated or LOST & set(endings)
        if not is_repeated:
            break
    assert len(requested) <= bound + 1


def names(records: BatchRecords) -> list[str]:
    reasons = {ending.get("reason"): name for name, ending in ENDINGS.items()}
    return [reasons[record.reason] for record in records.records]


@pytest.mark.parametrize(("ran", "counts"), [("nothing", True), ("process", False)])
def test_a_start_that_failed_counts_if_no_container_started(ran: str, counts: bool) -> None:  # noqa: FBT001
    record = a_record(status=Status.FAILED, reason="start-failed", ran=ran)

    assert is_of_infrastructure(record, Infrastructure(1)) is counts


def test_attempts_that_git_does_not_keep_count_as_failures_of_the_trial() -> None:
    trials, batch = recorded(1, ["refused"], retries=1)
    (record,) = batch.records
    cut = replace(batch, records=(replace(record, others=LeftOutAttempts(failed=2)),))

    assert Losses.of([(trials, batch)], Infrastructure(1)).last
    assert not Losses.of([(trials, cut)], Infrastructure(1)).last
