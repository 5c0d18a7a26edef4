"""Uncertainty of what a sweep reached, against a bootstrap that draws every configuration."""

import random
from statistics import fmean, quantiles

import pytest

from sweepledger.results.sweep_statistics import SweepStatistics, statistics_difference
from sweepledger.structs.metric import Goal

VALUES = tuple(((number * 7919) % 1009) / 1009 for number in range(200))


@pytest.mark.parametrize(("goal", "count"), [(Goal.MAXIMIZE, 1), (Goal.MINIMIZE, 5)])
def test_the_intervals_are_those_of_a_plain_bootstrap(goal: Goal, count: int) -> None:
    rng = random.Random(3)  # noqa: S311 - statistics
    statistics = SweepStatistics(VALUES, goal)
    resamples = [
        fmean(sorted(rng.choices(VALUES, k=len(VALUES)), reverse=goal is Goal.MAXIMIZE)[:count])
        for _ in range(2000)
    ]

    estimate = statistics.best if count == 1 else statistics.top

    cuts = quantiles(resamples, n=40)
    assert estimate is not None
    assert (estimate.low, estimate.high) == pytest.approx((cuts[0], cuts[-1]), abs=0.003)


def test_the_best_so_far_follows_the_order_and_ends_at_the_best() -> None:
    curve = SweepStatistics((3.0, 1.0, 2.0), Goal.MINIMIZE).best_so_far

    assert [(point.configurations, point.value) for point in curve] == [(1, 3.0), (2, 1.0), (3, 1.0)]
    assert all(point.low == 1.0 <= point.high <= 3.0 for point in curve)
    assert len(SweepStatistics(VALUES, Goal.MINIMIZE).best_so_far) == 20


def test_few_configurations_have_no_interval_and_none_no_estimate() -> None:
    alone, nothing = SweepStatistics((1.0,), Goal.MAXIMIZE), SweepStatistics((), Goal.MAXIMIZE)

    assert alone.best is not None
    assert (alone.best.value, alone.best.low) == (1.0, None)
    assert (nothing.best, nothing.top, nothing.best_so_far) == (None, None, ())
    assert statistics_difference(alone, nothing) is None


def test_better_means_smaller_for_a_loss() -> None:
    a, b = SweepStatistics((1.0, 2.0), Goal.MINIMIZE), SweepStatistics((0.25, 0.5), Goal.MINIMIZE)

    difference = statistics_difference(a, b)

    assert difference is not None
    assert (difference.best.value, difference.b_better) == (-0.75, 1.0)
