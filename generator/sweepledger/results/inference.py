"""Means, intervals and the bias of selection: standard library only, the same on every machine.

SciPy would cost the collector a third of its memory. Results of the C library are `rounded`.
"""

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

CONFIDENCE = 0.95
FEWEST = 2
"""Number of values that an interval needs."""
SIGNIFICANT_DIGITS = 11
HALVINGS = 100
"""Number of bisections: more than any two floats need."""
FARTHEST = 12.0
"""Standard deviations beyond which a float cannot represent what is left of a normal distribution."""
STEPS = 2400


class Interval(NamedTuple):
    """A 95 % confidence interval of a mean."""

    low: float
    high: float


def mean(values: Sequence[float]) -> float:
    """Return the mean, which does not depend on the order of the values."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)


def median(values: Sequence[float]) -> float:
    """Return the median: for an even number of values, the mean of the middle two."""
    ordered = sorted(values)
    return mean((ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]))


def deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation of a sample (n - 1), in any order; None for fewer than two values."""
    if len(values) < FEWEST:
        return None
    try:
        return statistics.stdev(values)  # exact fractions, rounded once
    except OverflowError:
        return math.inf


def interval(values: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of the mean by Student's t; None for fewer than two values."""
    spread = deviation(values)
    if spread is None:
        return None
    reach = student(len(values) - 1) * spread / math.sqrt(len(values))
    middle = mean(values)
    return Interval(middle - reach, middle + reach)


@lru_cache(maxsize=256)
def student(freedom: int) -> float:
    """Return the quantile of Student's t: 95 % of the distribution is between it and its negative.

    For whole degrees of freedom the distribution is a finite sum in the angle atan(t / sqrt(freedom)):
    Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < CONFIDENCE else (low, middle)
    return rounded(math.sqrt(freedom) * math.tan(low))


def student_tail(statistic: float, freedom: int) -> float:
    """Return the probability that |t| is at least as large as that of a statistic (Student's t, two-sided)."""
    return rounded(1 - _within(math.atan(abs(statistic) / math.sqrt(freedom)), freedom))


def _within(angle: float, freedom: int) -> float:
    """Return the probability that |t| is below sqrt(freedom) * tan(angle)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for step in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * cosine * step / (step + 1)
        if term < total * 1e-17:
            break
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def pooled(samples: Sequence[Sequence[float]]) -> float | None:
    """Return the pooled standard deviation of samples; None if none has two values."""
    spreads = [(len(values) - 1, deviation(values)) for values in samples]
    known = [(freedom, spread) for freedom, spread in spreads if spread is not None]
    if not known:
        return None
    widest = max(spread for _, spread in known)
    if widest == 0 or math.isinf(widest):
        return widest
    # Scaled, because the square of a large number need not be finite.
    squares = math.fsum(freedom * (spread / widest) ** 2 for freedom, spread in known)
    return widest * math.sqrt(squares / sum(freedom for freedom, _ in known))


def optimism(samples: Sequence[Sequence[float]]) -> float | None:
    """Return by how much the best of several means overstates its true mean, if all true means are equal.

    It is the pooled standard deviation, times the root of the mean of 1 / n over the samples, times the
    expected maximum of as many standard normal numbers: the optimizer's curse of Smith and Winkler, "The
    Optimizer's Curse" (Management Science 52, 2006), where nothing is known of the true means. True means
    that differ reduce it. None if no spread is known.
    """
    counted = [values for values in samples if values]
    spread = pooled(counted)
    if spread is None:
        return None
    share = math.fsum(1 / len(values) for values in counted) / len(counted)
    return rounded(spread * math.sqrt(share) * expected_maximum(len(counted)))


@lru_cache(maxsize=256)
def expected_maximum(count: int) -> float:
    """Return the expected maximum of `count` independent standard normal numbers.

    The integral of Tippett, "On the extreme individuals and the range of samples taken from a normal
    population" (Biometrika 17, 1925), over both halves of the line at once, by Simpson's rule.
    """
    if count < FEWEST:
        return 0.0
    width = FARTHEST / STEPS
    weights = (1 if step in {0, STEPS} else 4 if step % 2 else 2 for step in range(STEPS + 1))
    # 1 - (1 - above)**count without the loss of its digits where `above` is small.
    total = math.fsum(
        weight * (-math.expm1(count * math.log1p(-above)) - above**count)
        for step, weight in enumerate(weights)
        for above in [math.erfc(step * width / math.sqrt(2)) / 2]
    )
    return rounded(total * width / 3)


def rounded(number: float) -> float:
    """Return a number rounded to the digits that are equal on all machines."""
    return float(f"{number:.{SIGNIFICANT_DIGITS}g}")
