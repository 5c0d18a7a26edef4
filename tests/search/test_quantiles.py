"""Quantile functions: within bounds, rounded, and equal on platforms whose exp and log differ."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from sweepledger.distributions.beta import Beta
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.continuous import Continuous
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_normal import LogNormal
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.rounding import (
    ERROR,
    quantized_quantile,
    round_to_ten_digits,
    rounded_quantile,
)
from sweepledger.distributions.uniform import Uniform
from sweepledger.search.rng import stream
from sweepledger.structs.domain import Domain
from tests.search.conformance import WITH_BETA

FIRST, LAST = 0.0, 1 - 2.0**-53
"""The ends of what can be drawn."""

EXTREME: dict[str, Domain] = {
    "widest": Uniform(-1.7e308, 1.7e308),
    "all sizes": LogUniform(1e-307, 1e307),
    "far off": Normal(1e308, 1e308),
    "steep": LogNormal(0, 1e9),
    "shifted out of sight": LogNormal(1e300, 1),
    "tail": Normal(0, 1, low=30),
    "beyond the tail": Normal(0, 1, low=50, high=60),
    "beyond the lower tail": Normal(0, 1, high=-50),
    "slice": Normal(0, 1, 0.1, 0.1000001),
    "flat beta": Beta(1e-3, 1e-3),
    "fine steps": Quantized(Uniform(0, 1e10), 1e-300),
    "steps of the steep": Quantized(LogNormal(0, 1000), 0.1),
    "coarse steps": Quantized(Uniform(0, 1), 1e300),
    "giant steps": Quantized(Uniform(0, 1.7e308), 1e308),
    "widest integers": IntUniform(-(2**53), 2**53),
}
SETTLED: dict[str, Continuous] = {
    "log_uniform": LogUniform(1e-5, 0.1),
    "wide log_uniform": LogUniform(1e-300, 1e300),
    "normal": Normal(0, 1),
    "shifted normal": Normal(5, 0.1),
    "truncated": Normal(0, 1, -1, 2),
    "one tail": Normal(0, 1, low=3),
    "log_normal": LogNormal(0, 1),
    "wide log_normal": LogNormal(3, 10),
}


@pytest.mark.parametrize("domain", [*WITH_BETA.values(), *EXTREME.values()], ids=[*WITH_BETA, *EXTREME])
def test_no_draw_is_infinite_or_a_noisy_number(domain: Domain) -> None:
    of = domain.quantile()

    for value in map(of, (FIRST, 1e-9, 0.25, 0.5, 1 - 1e-9, LAST)):
        if isinstance(value, float):
            assert math.isfinite(value)
            assert str(value) != "-0.0"


@pytest.mark.parametrize(
    ("domain", "low", "high"),
    [
        (Uniform(0.1, 0.3), 0.1, 0.3),
        (LogUniform(1e-4, 1e-1), 1e-4, 1e-1),
        (Uniform(1 / 3, 2 / 3), 1 / 3, 2 / 3),
        (Normal(0, 1, -0.25, 0.5), -0.25, 0.5),
        (IntUniform(3, 5), 3, 5),
        (Quantized(Uniform(1, 100), 8), 1, 96),
        (Quantized(Uniform(0.15, 0.85), 0.5), 0.15, 0.85),
        (Quantized(LogUniform(0.2, 3), 1), 0.2, 3),
    ],
    ids=str,
)
def test_values_reach_the_bounds_and_never_cross_them(domain: Domain, low: float, high: float) -> None:
    assert (domain.quantile()(FIRST), domain.quantile()(LAST)) == (low, high)


def test_real_numbers_have_ten_significant_digits() -> None:
    assert Uniform(0, 1).quantile()(1 / 3) == 0.3333333333
    assert LogUniform(1e-5, 1e-3).quantile()(1 / 3) == 4.641588834e-05
    assert round_to_ten_digits(1234567.890123) == 1234567.890
    assert str(round_to_ten_digits(-0.0)) == "0.0"


def test_a_value_without_probability_is_never_drawn() -> None:
    of = Choice(("never", "a", "nor this", "b", "last"), (0.0, 0.5, 0.0, 0.5, 0.0)).quantile()

    assert {of(u) for u in (FIRST, 0.25, 0.4999, 0.5, 0.75, LAST)} == {"a", "b"}


@pytest.mark.parametrize("domain", SETTLED.values(), ids=SETTLED)
def test_fast_and_exact_quantiles_agree_within_the_error_bound(domain: Continuous) -> None:
    quantile = domain.unrounded()
    assert quantile.exact

    for u in [2.0**-54, LAST, *stream(1, "x", purpose="test").uniforms(range(300))]:
        fast = quantile.fast(u)
        assert abs(float(quantile.exact(u) - Decimal(fast))) <= quantile.slack(fast)


def nudged(fast: Callable[[float], float], part: float) -> Callable[[float], float]:
    return lambda u: fast(u) * (1 + part)


@pytest.mark.parametrize("domain", SETTLED.values(), ids=SETTLED)
def test_a_platform_with_other_last_digits_draws_the_same_values(domain: Continuous) -> None:
    here = domain.unrounded()
    there = replace(here, fast=nudged(here.fast, ERROR / 4))
    draws = stream(1, "x", purpose="test").uniforms(range(4_000))

    assert [*map(rounded_quantile(here), draws)] == [*map(rounded_quantile(there), draws)]
    assert [*map(quantized_quantile(here, 1e-9), draws[:1000])] == [
        *map(quantized_quantile(there, 1e-9), draws[:1000])
    ]


@pytest.mark.parametrize("domain", WITH_BETA.values(), ids=WITH_BETA)
def test_the_quantile_of_a_coordinate_is_the_same_value(domain: Domain) -> None:
    for number in range(1, 100):
        value = domain.quantile()(number / 100)
        back = domain.coordinate()(value)
        assert back is not None
        again = domain.quantile()(min(back, LAST))
        assert again == (pytest.approx(value, rel=1e-6) if isinstance(value, float) else value)


def test_a_value_outside_a_domain_has_no_coordinate() -> None:
    assert Choice((1, 2)).coordinate()(3) is None
    assert Choice((1, 2)).coordinate()(True) is None
    assert Uniform(0, 1).coordinate()(True) is None
    assert Uniform(0, 1).coordinate()("0.5") is None
    assert Uniform(0, 1).coordinate()(1.5) is None
    assert IntUniform(1, 3).coordinate()(4) is None
    assert [domain.coordinate()(-1) for domain in (LogUniform(1, 2), LogNormal(0, 1), Beta(1, 1))] == [
        None
    ] * 3


@pytest.mark.parametrize(("low", "high"), [(10, 11), (-11, -10), (30.0, None)], ids=["upper", "lower", "far"])
def test_coordinates_keep_their_digits_in_tails(low: float, high: float | None) -> None:
    domain = Normal(0, 1, low, high)
    coordinate = domain.coordinate()

    for u in (0.25, 0.5, 0.75):
        assert coordinate(domain.quantile()(u)) == pytest.approx(u, abs=1e-6)
