"""Durations of trials, learned from recorded trials."""

import math
from collections.abc import Mapping
from random import Random

import pytest

from sweepledger.plan.durations import (
    ENOUGH_RECORDS,
    DurationModel,
    TimedTrial,
    TimingHistory,
    fit_durations,
    slot_overhead,
    timing_history,
)
from sweepledger.structs.record import Record, Status
from sweepledger.structs.values import Value
from tests.builders import a_record


def timed(count: int = 48, batches: int = 3, drift: float = 0.0) -> list[TimedTrial]:
    """Trials that take a second an epoch, twice that with the slow optimizer, and half a per cent of luck."""
    random, trials = Random(0), []  # noqa: S311 - no secret
    for batch in range(batches):
        shared = math.exp(random.gauss(0, drift))
        for _ in range(count // batches):
            values: Mapping[str, Value] = {
                "epochs": random.choice((1, 2, 4, 8)),
                "optimizer": random.choice(("sgd", "slow")),
                "rate": random.random(),
                "width": 64,
            }
            seconds = values["epochs"] * (1 + (values["optimizer"] == "slow")) * shared  # type: ignore[operator]
            trials.append(TimedTrial(f"b{batch}", values, seconds * math.exp(random.gauss(0, 0.005))))
    return trials


def learned(trials: list[TimedTrial]) -> DurationModel:
    made = fit_durations(TimingHistory(tuple(trials)))
    assert made is not None
    return made


def trial(**changes: Value) -> dict[str, Value]:
    return {"epochs": 2, "optimizer": "sgd", "rate": 0.5, "width": 64, **changes}


def test_two_trials_are_too_few_for_a_model() -> None:
    assert fit_durations(TimingHistory()) is None
    assert fit_durations(TimingHistory(tuple(timed()[:2]))) is None


def test_the_parameters_that_matter_are_found_and_no_others() -> None:
    model = learned(timed())

    assert [effect.parameter for effect in model.effects] == ["epochs", "optimizer"]
    assert model.seconds(trial(epochs=8, optimizer="slow")) == pytest.approx(16, rel=0.02)
    assert model.seconds(trial(epochs=1)) == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("values", [{"epochs": 16}, {"optimizer": "new"}, {"width": 128}, {"depth": 3}])
def test_a_trial_unlike_all_recorded_ones_has_no_estimate(values: dict[str, Value]) -> None:
    model = learned(timed())

    assert model.seconds(trial(**values)) is None
    assert model.unlike_parameter(trial(**values)) == next(iter(values))


def test_few_records_do_not_show_that_a_parameter_has_no_effect() -> None:
    model = learned(timed()[: ENOUGH_RECORDS - 1])

    assert model.effects == ()
    assert model.seconds(trial()) is not None
    assert model.unlike_parameter(trial(rate=100)) == "rate"


def test_differences_between_batches_are_separated_from_those_between_trials() -> None:
    steady, shaky = learned(timed(120, 8)), learned(timed(120, 8, drift=0.5))

    assert steady.drift < 0.1
    assert 0.25 < shaky.drift < 1
    assert max(shaky.noise) < 1.2


# What records say


def span(index: int, start: int, end: int, seconds: float | None = None, **changes: object) -> Record:
    return a_record(
        index,
        started=f"2026-01-01T00:{start // 60:02}:{start % 60:02}Z",
        finished=f"2026-01-01T00:{end // 60:02}:{end % 60:02}Z",
        seconds=float(end - start) if seconds is None else seconds,
        **changes,
    )


def test_the_overhead_is_the_idle_time_of_a_slot() -> None:
    # Two at once: 0 to 10 and 0 to 12, then 13 to 20 after the first, and 16 to 20 after the second.
    records = [span(0, 0, 10), span(1, 0, 12), span(2, 13, 20), span(3, 16, 20)]

    assert slot_overhead(records) == pytest.approx(3.5)


def test_without_a_slot_used_twice_the_overhead_is_unknown() -> None:
    assert slot_overhead([span(0, 0, 10), span(1, 0, 12)]) is None


def test_failed_attempts_count_for_retries_but_not_for_durations() -> None:
    failed = span(1, 0, 3, status=Status.FAILED)
    history = timing_history([("b", [(span(0, 0, 10), {"x": 1}), (failed, {"x": 2})])])

    assert [item.seconds for item in history.finished] == [10]
    assert history.failed == (3,)
    assert history.failure_rate == 0.5
