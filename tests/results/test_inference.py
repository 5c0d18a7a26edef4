"""Means, intervals and the optimism of the maximum, against SciPy and against what is known of them."""

import itertools
import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats  # type: ignore[import-untyped]

from sweepledger.results import inference
from sweepledger.results.inference import Interval

FINITE = st.floats(-1e6, 1e6)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 10, 30, 59, 100, 12_345])
def test_the_quantile_of_students_t_is_scipys(freedom: int) -> None:
    assert inference.student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-10)


@pytest.mark.parametrize("count", [2, 3, 10, 1000, 100_000])
def test_the_expected_maximum_is_the_integral_over_its_density(count: int) -> None:
    def moment(x: float) -> float:
        return float(x * count * stats.norm.pdf(x) * stats.norm.cdf(x) ** (count - 1))

    expected, _ = integrate.quad(moment, -10, 10, points=[0, math.sqrt(2 * math.log(count))])

    assert inference.expected_maximum(count) == pytest.approx(expected, rel=1e-7)


@given(st.lists(FINITE, min_size=2, max_size=8))
def test_the_interval_is_scipys(values: list[float]) -> None:
    interval = inference.interval(values)

    assert interval is not None
    spread = statistics.stdev(values)
    if spread == 0:
        assert interval == Interval(inference.mean(values), inference.mean(values))
        return
    low, high = stats.t.interval(
        0.95, len(values) - 1, loc=statistics.mean(values), scale=spread / math.sqrt(len(values))
    )
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-9, abs=1e-9 * spread)


def test_the_pooled_deviation_weighs_samples_by_their_freedom() -> None:
    samples = [(1.0, 2.0, 3.0), (10.0, 14.0), (7.0,)]

    squares = 2 * statistics.variance(samples[0]) + 1 * statistics.variance(samples[1])
    assert inference.pooled(samples) == pytest.approx(math.sqrt(squares / 3))
    assert inference.pooled([(1.0, 1.0), (2.0, 2.0)]) == 0


def test_the_optimism_is_what_selection_does_to_equal_means() -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    values, guessed = [], []
    for _ in range(1000):
        samples = [tuple(chance.gauss(0.9, 0.02) for _ in range(3)) for _ in range(8)]
        values.append(max(map(inference.mean, samples)) - 0.9)
        guess = inference.optimism(samples)
        assert guess is not None
        guessed.append(guess)

    assert statistics.mean(guessed) == pytest.approx(statistics.mean(values), rel=0.06)


def test_huge_values_have_an_honest_interval() -> None:
    huge = (1.7e308, -1.7e308, 1.7e308)

    interval = inference.interval(huge)

    assert inference.deviation(huge) is not None
    assert interval is not None
    assert not interval.low > -math.inf or math.isfinite(interval.low)
    assert inference.pooled([huge, huge]) is not None


def test_intervals_of_few_values_cover_the_mean_as_often_as_they_say() -> None:
    chance = random.Random(11)  # noqa: S311 - no secret
    samples = ([chance.gauss(0, 1) for _ in range(3)] for _ in itertools.repeat(None, 4000))
    covered = sum(
        interval.low <= 0 <= interval.high
        for sample in samples
        if (interval := inference.interval(sample)) is not None
    )

    assert 0.94 <= covered / 4000 <= 0.96
