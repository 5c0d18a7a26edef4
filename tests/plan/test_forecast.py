"""Forecasts of completion and cost: from records, else from the expected minutes, else unknown."""

from dataclasses import replace

import pytest
from msgspec import structs

from sweepledger.plan.durations import TimedTrial, TimingHistory
from sweepledger.plan.forecast import DurationSource, PlannedTrials, Quantiles, forecast, hourly_price
from sweepledger.structs.node_pool import NodeCapacity, Pool
from sweepledger.structs.run_config import Resources, RunConfig
from tests.plan.test_pool_simulation import PUBLISHED, batch_size

GPU = Resources("4", "16Gi", gpu=1)
THREE = Pool("gpus", NodeCapacity("16", "64Gi", gpu=3), max_nodes=1, startup_seconds=0, price=6.0)
STEADY = TimingHistory(tuple(TimedTrial(f"b{place % 4}", {"x": place % 5}, 60.0) for place in range(40)))


def exactly(value: float) -> Quantiles:
    return Quantiles(value, value, value)


def a_workload(
    count: int = 16, history: TimingHistory = STEADY, pool: Pool | None = THREE, **run: object
) -> PlannedTrials:
    made = RunConfig(**{"parallelism": count, "resources": GPU, **run})  # type: ignore[arg-type]
    return PlannedTrials(made, [{"x": place % 5} for place in range(count)], pool, history)


def test_without_records_and_expectation_the_duration_is_unknown() -> None:
    result = forecast(a_workload(history=TimingHistory()))

    assert result.source is DurationSource.UNKNOWN
    assert (result.trial_seconds, result.trial_hours) == (None, None)
    assert (result.money, result.completion_seconds) == (None, None)
    assert result.reason == "no trial of this program is recorded"


def test_an_expected_duration_has_no_interval() -> None:
    result = forecast(a_workload(history=TimingHistory(), expected_minutes=2))

    assert result.source is DurationSource.EXPECTED
    assert result.trial_seconds == exactly(120)
    assert result.completion_seconds == exactly(6 * 120)


def test_records_take_precedence_over_the_expectation() -> None:
    result = forecast(a_workload(expected_minutes=500))

    assert result.source is DurationSource.RECORDS
    assert result.records == 40
    assert result.trial_seconds is not None
    assert result.trial_seconds.median == pytest.approx(60, rel=0.05)


def test_the_expectation_is_used_for_trials_unlike_all_recorded_ones() -> None:
    unlike = replace(a_workload(), trials=[{"x": 1}, {"x": 1, "depth": 9}])

    assert forecast(unlike).reason == "no recorded trial is like depth=9"
    expected = replace(unlike, run=structs.replace(unlike.run, expected_minutes=1))
    assert forecast(expected).source is DurationSource.EXPECTED


def test_no_trial_lasts_longer_than_its_timeout() -> None:
    result = forecast(a_workload(timeout_seconds=30))

    assert result.trial_seconds == exactly(30)


def test_money_is_the_share_of_full_nodes() -> None:
    assert hourly_price(RunConfig(resources=GPU), THREE) == 2.0
    assert hourly_price(RunConfig(resources=GPU, nodes=4), THREE) == 8.0
    assert hourly_price(RunConfig(resources=GPU), structs.replace(THREE, price=None)) is None
    result = forecast(a_workload())
    assert result.money is not None
    assert result.money.median == pytest.approx(16 / 60 * 2, rel=0.05)


def test_an_idle_pool_takes_its_startup_and_a_busy_one_does_not() -> None:
    sleepy = structs.replace(THREE, startup_seconds=600)
    first, second = (
        forecast(a_workload(pool=sleepy)),
        forecast(a_workload(pool=sleepy), [a_workload(3, pool=sleepy)]),
    )

    assert first.completion_seconds is not None
    assert second.completion_seconds is not None
    assert 900 < first.completion_seconds.median < 1000
    # The three ahead take a minute at most, and keep the node warm.
    assert second.completion_seconds.median < first.completion_seconds.median - 400


def test_active_batches_delay_completion_and_unknown_ones_are_counted() -> None:
    alone = forecast(a_workload())
    behind = forecast(a_workload(), [a_workload(60), a_workload(60, history=TimingHistory())])

    assert (behind.ahead, behind.uncounted) == (2, 1)
    assert alone.completion_seconds is not None
    assert behind.completion_seconds is not None
    assert behind.completion_seconds.low > alone.completion_seconds.low
    # What is left of twenty minutes' work, on average.
    assert 300 < behind.completion_seconds.median - alone.completion_seconds.median < 900


def test_failed_attempts_cost_time() -> None:
    shaky = replace(STEADY, failed=(60.0,) * 40)

    without, with_some = forecast(a_workload(history=shaky)), forecast(a_workload(history=shaky, retries=10))

    assert without.trial_hours is not None
    assert with_some.trial_hours is not None
    assert with_some.trial_hours.median > 1.5 * without.trial_hours.median


def test_unknown_configurations_are_like_recorded_ones_and_rounds_run_in_sequence() -> None:
    unknown = replace(a_workload(), trials=[None] * 80)
    at_once, in_rounds = forecast(unknown), forecast(replace(unknown, rounds=5))
    one = forecast(replace(unknown, trials=[None] * 16))

    assert at_once.source is in_rounds.source is DurationSource.RECORDS
    assert at_once.trial_hours == in_rounds.trial_hours, "rounds change when trials run, not for how long"
    assert at_once.completion_seconds is not None
    assert in_rounds.completion_seconds is not None
    assert one.completion_seconds is not None
    assert in_rounds.completion_seconds.median > at_once.completion_seconds.median
    assert in_rounds.completion_seconds.median == pytest.approx(one.completion_seconds.median * 5, rel=0.05)
    spread = (
        in_rounds.completion_seconds.high - in_rounds.completion_seconds.low
    ) / in_rounds.completion_seconds.median
    assert spread < (one.completion_seconds.high - one.completion_seconds.low) / one.completion_seconds.median


def test_in_rounds_of_equal_trials_each_round_takes_as_long_as_one_trial() -> None:
    workload = replace(a_workload(7, pool=None, parallelism=3, expected_minutes=10), rounds=3)

    result = forecast(replace(workload, history=TimingHistory()))

    assert result.completion_seconds == exactly(1800)


# What NVIDIA published


def test_the_plan_of_the_published_grid_predicts_its_makespan() -> None:
    recorded = TimingHistory(
        tuple(
            TimedTrial("cifar10-b1", {"batch_size": batch_size(job), "lr": 0.4 if job < 9 else 0.6}, seconds)
            for job, seconds in PUBLISHED.items()
        )
    )
    grid = [{"batch_size": size, "lr": lr} for lr in (0.4, 0.6) for size in (512, 128) for _ in range(4)]

    result = forecast(PlannedTrials(RunConfig(parallelism=16, resources=GPU), grid, THREE, recorded))

    assert result.parameters == ("batch_size",)
    assert result.trial_seconds is not None
    assert result.completion_seconds is not None
    assert result.completion_seconds.low < 543.5 < result.completion_seconds.high
    assert result.completion_seconds.median == pytest.approx(543.5, rel=0.1)
    assert result.completion_seconds.high / result.completion_seconds.low < 1.5
