"""Points on a line: exact decimals where they are, ten digits where they are not."""

import math
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.distributions.ranges import (
    Spacing,
    exponential,
    exponentially_spaced,
    is_steppable,
    spaced,
    step_count,
    stepped,
)
from sweepledger.structs.domain import is_monotonic


@pytest.mark.parametrize(
    ("low", "high", "step", "points"),
    [
        (0.1, 0.5, 0.1, (0.1, 0.2, 0.3, 0.4, 0.5)),
        (0, 1, 0.25, (0.0, 0.25, 0.5, 0.75, 1.0)),
        (0.0, 2, 1, (0.0, 1.0, 2.0)),
        (0, 4, 2.0, (0.0, 2.0, 4.0)),
        (0, 4, 2, (0, 2, 4)),
        (-1, 1, 1, (-1, 0, 1)),
        (1e-5, 3e-5, 1e-5, (1e-05, 2e-05, 3e-05)),
        (0.7, 0.7, 0.1, (0.7,)),
        (2**53 - 2, 2**53, 1, (2**53 - 2, 2**53 - 1, 2**53)),
    ],
)
def test_steps_are_plain_decimals(low: float, high: float, step: float, points: tuple[float, ...]) -> None:
    assert repr(stepped(low, high, step)) == repr(points)
    assert step_count(low, high, step) == len(points)


@pytest.mark.parametrize(("low", "high", "step"), [(0, 1, 0.3), (0.1, 0.35, 0.1), (1, 2, 3)])
def test_a_step_that_misses_the_end_is_told(low: float, high: float, step: float) -> None:
    assert step_count(low, high, step) is None


def test_steps_are_counted_without_being_made() -> None:
    assert step_count(0, 1e300, 1e-300) == 10**600 + 1


def test_steps_of_many_digits_are_the_nearest_floats() -> None:
    values = stepped(0.1234567890123456, 0.1234567890123460, 5e-17)

    assert len(values) == 9
    assert (values[1], values[-1]) == (0.12345678901234565, 0.123456789012346)
    assert is_monotonic(values)


@pytest.mark.parametrize(
    ("low", "high", "step", "is_held"),
    [
        (0, 1, 1e-5, True),
        (0, 0.5, 0.1, True),
        (-(2**53), 2**53, 2**52, True),
        (0.1234567890123456, 0.1234567890123460, 1e-16, True),
        (10**15, 10**15 + 3, 0.3, False),
        (1, 1 + 4e-16, 1e-16, False),
    ],
)
def test_steps_finer_than_floats(low: float, high: float, step: float, *, is_held: bool) -> None:
    assert is_steppable(low, high, step) is is_held


DECIMALS = st.decimals(min_value=-1000, max_value=1000, places=4)


@given(low=DECIMALS, step=st.decimals(min_value="0.0001", max_value=10, places=4), count=st.integers(1, 50))
def test_every_step_is_the_decimal_sum(low: Decimal, step: Decimal, count: int) -> None:
    high = low + step * (count - 1)

    values = stepped(float(low), float(high), float(step))

    assert [Decimal(repr(point)) for point in values] == [low + step * index for index in range(count)]


@pytest.mark.parametrize(
    ("spacing", "ends", "count", "points"),
    [
        ("linspace", (0, 1), 5, (0.0, 0.25, 0.5, 0.75, 1.0)),
        ("linspace", (0.0, 4.0), 5, (0.0, 1.0, 2.0, 3.0, 4.0)),
        ("linspace", (0, 4), 5, (0, 1, 2, 3, 4)),
        ("linspace", (0, 1), 4, (0.0, 0.3333333333, 0.6666666667, 1.0)),
        ("linspace", (1, 0), 3, (1.0, 0.5, 0.0)),
        ("linspace", (5, 9), 1, (5,)),
        ("linspace", (0.1234567890123456, 1), 2, (0.1234567890123456, 1.0)),
        ("geomspace", (1.0, 100), 3, (1.0, 10.0, 100.0)),
        ("geomspace", (1, 1000), 4, (1, 10, 100, 1000)),
        ("geomspace", (1, 256), 9, (1, 2, 4, 8, 16, 32, 64, 128, 256)),
        ("geomspace", (-1, -100), 3, (-1, -10, -100)),
        ("geomspace", (1e-4, 1e-1), 4, (0.0001, 0.001, 0.01, 0.1)),
        ("geomspace", (3, 7), 1, (3,)),
        ("geomspace", (1, 2**40), 3, (1, 2**20, 2**40)),
        ("geomspace", (2**34, 2**36), 3, (2**34, 2**35, 2**36)),
        ("geomspace", (12345678901, 12345678903), 3, (12345678901, 12345678901, 12345678903)),
        ("geomspace", (-12345678901, -12345678903), 3, (-12345678901, -12345678901, -12345678903)),
        ("linspace", (12345678901, 12345678903), 3, (12345678901, 12345678902, 12345678903)),
        ("linspace", (12345678901, 12345678902), 3, (12345678901.0, 12345678901.5, 12345678902.0)),
        ("linspace", (12345678901, 12345678902), 4, (12345678901, 12345678901, 12345678901, 12345678902)),
    ],
)
def test_points_are_those_of_numpy_without_its_noise(
    spacing: str, ends: tuple[float, float], count: int, points: tuple[float, ...]
) -> None:
    assert repr(spaced(Spacing(spacing), *ends, count)) == repr(points)


@given(
    spacing=st.sampled_from([Spacing.LINEAR, Spacing.GEOMETRIC]),
    start=st.floats(1e-6, 1e6),
    stop=st.floats(1e-6, 1e6),
    count=st.integers(2, 20),
)
def test_both_ends_are_as_written(spacing: Spacing, start: float, stop: float, count: int) -> None:
    values = spaced(spacing, start, stop, count)

    assert len(values) == count
    assert (values[0], values[-1]) == (start, stop)


@pytest.mark.parametrize(
    ("points", "are_distinct"),
    [((1, 2, 3), True), ((3, 2), True), ((1,), True), ((1, 1, 2), False), ((1, 3, 2), False)],
)
def test_equal_or_unordered_points(points: tuple[float, ...], *, are_distinct: bool) -> None:
    assert is_monotonic(points) is are_distinct


@given(start=st.floats(1e-3, 1e3), ratio=st.floats(1.5, 100), count=st.integers(3, 20))
def test_geometric_points_have_equal_ratios(start: float, ratio: float, count: int) -> None:
    values = spaced(Spacing.GEOMETRIC, start, start * ratio, count)

    for left, right in pairwise(values):
        assert math.isclose(right / left, ratio ** (1 / (count - 1)), rel_tol=1e-8)


def test_exponents_are_those_of_e() -> None:
    assert exponentially_spaced(-2, 0, 3) == (0.1353352832, 0.3678794412, 1)
    assert exponential(1) == math.e
    assert exponential(0) == 1


@pytest.mark.parametrize(("exponent", "value"), [(1e308, math.inf), (-1e308, 0.0), (710, math.inf)])
def test_exponents_beyond_all_floats_are_infinite_or_zero(exponent: float, value: float) -> None:
    assert exponential(exponent) == value
