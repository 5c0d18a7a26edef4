"""When trials are done and what they cost: from records, else from what is expected, else unknown."""

from dataclasses import replace

import pytest

from generator.plan.asked import Asked, Source
from generator.plan.forecast import forecast, price_an_hour, rounds
from generator.plan.intervals import Interval
from generator.plan.past import Past, Timed
from generator.structs.settings import Node, Pool
from generator.structs.sweep import Resources, Run
from tests.plan.test_simulation import PUBLISHED, batch_size

GPU = Resources("4", "16Gi", gpu=1)
THREE = Pool("gpus", Node("16", "64Gi", gpu=3), max_nodes=1, startup_seconds=0, price=6.0)
STEADY = Past(tuple(Timed(f"b{place % 4}", {"x": place % 5}, 60.0) for place in range(40)))


def asked(count: int = 16, past: Past = STEADY, pool: Pool | None = THREE, **run: object) -> Asked:
    made = Run(**{"parallelism": count, "resources": GPU, **run})  # type: ignore[arg-type]
    return Asked(made, [{"x": place % 5} for place in range(count)], pool, past)


def test_without_records_and_expectation_nobody_knows() -> None:
    found = forecast(asked(past=Past()))

    assert found.source is Source.UNKNOWN
    assert (found.trial, found.hours, found.money, found.done) == (None, None, None, None)
    assert found.reason == "no trial of this program is recorded"


def test_what_an_author_expects_is_told_without_an_interval() -> None:
    found = forecast(asked(past=Past(), expected_minutes=2))

    assert found.source is Source.EXPECTED
    assert found.trial == Interval.exactly(120)
    assert found.done == Interval.exactly(6 * 120)


def test_records_are_believed_before_any_expectation() -> None:
    found = forecast(asked(expected_minutes=500))

    assert found.source is Source.RECORDS
    assert found.records == 40
    assert found.trial is not None
    assert found.trial.median == pytest.approx(60, rel=0.05)


def test_trials_unlike_all_recorded_ones_are_left_to_the_expectation() -> None:
    unlike = replace(asked(), trials=[{"x": 1}, {"x": 1, "depth": 9}])

    assert forecast(unlike).reason == "no recorded trial is like depth=9"
    assert forecast(replace(unlike, run=replace(unlike.run, expected_minutes=1))).source is Source.EXPECTED


def test_no_trial_lasts_longer_than_its_timeout() -> None:
    found = forecast(asked(timeout_seconds=30))

    assert found.trial == Interval.exactly(30)


def test_money_is_the_share_of_full_nodes() -> None:
    assert price_an_hour(Run(resources=GPU), THREE) == 2.0
    assert price_an_hour(Run(resources=GPU, nodes=4), THREE) == 8.0
    assert price_an_hour(Run(resources=GPU), replace(THREE, price=None)) is None
    found = forecast(asked())
    assert found.money is not None
    assert found.money.median == pytest.approx(16 / 60 * 2, rel=0.05)


def test_a_pool_that_sleeps_costs_its_startup_and_one_at_work_does_not() -> None:
    sleepy = replace(THREE, startup_seconds=600)
    first, second = forecast(asked(pool=sleepy)), forecast(asked(pool=sleepy), [asked(3, pool=sleepy)])

    assert first.done is not None
    assert second.done is not None
    assert 900 < first.done.median < 1000
    # The three ahead take a minute at most, and keep the node warm.
    assert second.done.median < first.done.median - 400


def test_those_ahead_are_waited_for_and_of_those_that_nobody_knows_it_is_said() -> None:
    alone = forecast(asked())
    behind = forecast(asked(), [asked(60), asked(60, past=Past())])

    assert (behind.ahead, behind.uncounted) == (2, 1)
    assert alone.done is not None
    assert behind.done is not None
    assert behind.done.low > alone.done.low
    # What is left of twenty minutes' work, on average.
    assert 300 < behind.done.median - alone.done.median < 900


def test_in_a_pool_without_end_nobody_waits() -> None:
    endless = replace(THREE, max_nodes=None)

    assert (
        forecast(asked(pool=endless), [asked(600, pool=endless)]).done == forecast(asked(pool=endless)).done
    )


def test_retries_cost_as_much_as_attempts_failed_for() -> None:
    shaky = replace(STEADY, broken=(60.0,) * 40)

    without, with_some = forecast(asked(past=shaky)), forecast(asked(past=shaky, retries=10))

    assert without.hours is not None
    assert with_some.hours is not None
    assert with_some.hours.median > 1.5 * without.hours.median


def test_a_pool_that_bears_no_trial_is_never_done() -> None:
    found = forecast(asked(pool=replace(THREE, node=Node("16", "64Gi", gpu=0))))

    assert found.done is None


def test_the_same_question_has_the_same_answer() -> None:
    assert forecast(asked(), [asked(9)], seed=7) == forecast(asked(), [asked(9)], seed=7)


def test_trials_whose_values_nobody_knows_yet_are_like_recorded_ones_and_rounds_follow_each_other() -> None:
    one = forecast(replace(asked(), trials=[None] * 16))
    all_of_them = rounds(one, 5)

    assert one.source is Source.RECORDS
    assert one.done is not None
    assert all_of_them.done == one.done.times(5)
    assert all_of_them.trials == 80


def test_ten_thousand_trials_are_drawn_as_often_as_time_allows() -> None:
    found = forecast(asked(10_000, pool=None, parallelism=100))

    assert found.done is not None
    assert found.done.low < 100 * 60 < found.done.high


# What NVIDIA published


def test_the_plan_of_the_published_grid_on_three_gpus_predicts_its_makespan_from_its_published_times() -> (
    None
):
    recorded = Past(
        tuple(
            Timed("cifar10-b1", {"batch_size": batch_size(job), "lr": 0.4 if job < 9 else 0.6}, seconds)
            for job, seconds in PUBLISHED.items()
        )
    )
    grid = [{"batch_size": size, "lr": lr} for lr in (0.4, 0.6) for size in (512, 128) for _ in range(4)]

    found = forecast(Asked(Run(parallelism=16, resources=GPU), grid, THREE, recorded))

    assert found.by == ("batch_size",)
    assert found.trial is not None
    assert found.done is not None
    assert found.done.low < 543.5 < found.done.high
    assert found.done.median == pytest.approx(543.5, rel=0.1)
    assert found.done.high / found.done.low < 1.5
