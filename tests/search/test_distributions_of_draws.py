"""Draws follow their distributions, tested over a hundred seeds against SciPy."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from math import floor

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]

from sweepledger.search.distributions import quantile_of
from sweepledger.search.rng import stream
from sweepledger.structs.domain import (
    Beta,
    Choice,
    Domain,
    IntUniform,
    LogNormal,
    LogUniform,
    Normal,
    Quantized,
    Uniform,
)
from sweepledger.structs.search_block import Sampler
from sweepledger.structs.values import Value
from tests.search.conformance import a_space, draw_assignments

SEEDS = range(100)
DRAWS = 1000
LEVEL = 0.01
MOST_REJECTIONS = 5
"""One is expected; six or more come by chance once in two thousand kinds."""

LEAST_EXPECTED = 5
"""In a bin, for the chi-square distribution to hold; rarer values are counted together."""

Cdf = Callable[[NDArray[np.float64]], NDArray[np.float64]]

CONTINUOUS: dict[str, tuple[Domain, Cdf]] = {
    "uniform": (Uniform(-1, 2), stats.uniform(-1, 3).cdf),
    "log_uniform": (LogUniform(1e-5, 0.1), stats.loguniform(1e-5, 0.1).cdf),
    "normal": (Normal(1, 2), stats.norm(1, 2).cdf),
    "truncated_normal": (Normal(1, 2, -1, 2), stats.truncnorm(-1, 0.5, 1, 2).cdf),
    "truncated_normal tail": (Normal(0, 1, low=3), stats.truncnorm(3, np.inf).cdf),
    "log_normal": (LogNormal(1, 0.5), stats.lognorm(0.5, scale=np.e).cdf),
    "beta": (Beta(2, 5), stats.beta(2, 5).cdf),
}
DISCRETE: dict[str, tuple[Domain, dict[Value, float]]] = {
    "categorical": (Choice(("a", "b", "c")), dict.fromkeys("abc", 1 / 3)),
    "categorical_w_probabilities": (
        Choice(("a", "b", "c"), (0.1, 0.2, 0.7)),
        {"a": 0.1, "b": 0.2, "c": 0.7},
    ),
    "int_uniform": (IntUniform(-3, 7), dict.fromkeys(range(-3, 8), 1 / 11)),
}
QUANTIZED: dict[str, tuple[Quantized, Cdf, tuple[float, float]]] = {
    "q_uniform": (Quantized(Uniform(0, 1), 0.1), stats.uniform(0, 1).cdf, (0, 1)),
    "q_log_uniform": (Quantized(LogUniform(1, 100), 8), stats.loguniform(1, 100).cdf, (1, 100)),
    "q_normal": (Quantized(Normal(0, 3), 0.5), stats.norm(0, 3).cdf, (-99, 99)),
    "q_log_normal": (Quantized(LogNormal(1, 1), 1), stats.lognorm(1, scale=np.e).cdf, (0, 9999)),
    "q_beta": (Quantized(Beta(2, 5), 0.05), stats.beta(2, 5).cdf, (0, 1)),
}


def draws(name: str, domain: Domain, seed: int) -> list[Value]:
    fractions = stream(seed, name, purpose="random").uniforms(range(DRAWS))
    return [*map(quantile_of(domain), fractions)]


def multiples(q: float, cdf: Cdf, bounds: tuple[float, float]) -> dict[Value, float]:
    """Give each multiple of q the mass that is rounded to it, and the bounds what they cut off."""
    low, high = bounds
    numbers = range(floor(low / q) - 1, floor(high / q) + 3)
    edges = cdf(np.array([(number - 0.5) * q for number in (*numbers, numbers.stop)]))
    values: dict[Value, float] = {}
    for number, mass in zip(numbers, np.diff(edges), strict=True):
        value = min(max(round(number * q, 9), low), high)
        values[value] = values.get(value, 0) + float(mass)
    return values


@cache
def critical_distance() -> float:
    """Give the Kolmogorov-Smirnov distance that chance exceeds once in a hundred times."""
    return float(stats.kstwo.isf(LEVEL, DRAWS))


def is_rejected_as_continuous(values: list[Value], cdf: Cdf) -> bool:
    reached = cdf(np.sort(np.array(values, dtype=np.float64)))
    steps = np.arange(DRAWS + 1) / DRAWS
    distance = max((steps[1:] - reached).max(), (reached - steps[:-1]).max())
    return bool(distance > critical_distance())


def is_rejected_as_discrete(values: list[Value], masses: dict[Value, float]) -> bool:
    counts = Counter(values)
    assert set(counts) <= set(masses)
    common = [value for value, mass in masses.items() if mass * DRAWS >= LEAST_EXPECTED]
    pairs = [(counts[value], masses[value] * DRAWS) for value in common]
    rest = DRAWS - sum(expected for _, expected in pairs)
    if rest > 1:
        pairs.append((DRAWS - sum(count for count, _ in pairs), rest))
    distance = sum((count - expected) ** 2 / expected for count, expected in pairs)
    return bool(distance > stats.chi2.isf(LEVEL, len(pairs) - 1))


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_continuous_draws_pass_a_kolmogorov_smirnov_test(kind: str) -> None:
    domain, cdf = CONTINUOUS[kind]

    rejections = sum(is_rejected_as_continuous(draws(kind, domain, seed), cdf) for seed in SEEDS)

    assert rejections <= MOST_REJECTIONS


@pytest.mark.parametrize("kind", DISCRETE)
def test_discrete_draws_pass_a_chi_square_test(kind: str) -> None:
    domain, masses = DISCRETE[kind]

    rejections = sum(is_rejected_as_discrete(draws(kind, domain, seed), masses) for seed in SEEDS)

    assert rejections <= MOST_REJECTIONS


@pytest.mark.parametrize("kind", QUANTIZED)
def test_quantized_draws_pass_a_chi_square_test(kind: str) -> None:
    domain, cdf, bounds = QUANTIZED[kind]
    masses = multiples(domain.q, cdf, bounds)

    rejections = sum(is_rejected_as_discrete(draws(kind, domain, seed), masses) for seed in SEEDS)

    assert rejections <= MOST_REJECTIONS


def test_the_statistical_tests_detect_small_deviations() -> None:
    _, cdf = CONTINUOUS["normal"]
    _, masses = DISCRETE["categorical"]

    assert is_rejected_as_continuous(draws("x", Normal(1.4, 2), 0), cdf)
    assert is_rejected_as_discrete(draws("x", Choice(("a", "b", "c"), (0.4, 0.3, 0.3)), 0), masses)


def test_the_streams_above_are_what_the_method_random_draws_from() -> None:
    assignments = draw_assignments(Sampler.RANDOM, a_space(x=Normal(0, 1)), DRAWS, seed=5)

    assert [candidate["x"] for candidate in assignments] == draws("x", Normal(0, 1), 5)
