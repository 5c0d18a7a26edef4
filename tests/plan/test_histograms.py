import pytest

from sweepledger.distributions.beta import Beta
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_normal import LogNormal
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.plan.coverage import Scale
from sweepledger.structs.domain import Domain
from tests.plan.spaces import bins, column

POINTS = [point / 100 for point in range(100)]


def test_bins_cover_the_whole_domain_so_that_gaps_are_visible() -> None:
    histogram = bins(column(Uniform(0, 1), [point / 2 for point in POINTS]))

    assert (histogram.low, histogram.high, histogram.min, histogram.max) == (0, 1, 0, 0.495)
    assert histogram.counts == (20,) * 5 + (0,) * 5


def test_a_logarithmic_domain_has_logarithmic_bins() -> None:
    histogram = bins(column(LogUniform(1e-5, 1), [10 ** (5 * point - 5) * 1.0001 for point in POINTS]))

    assert histogram.scale is Scale.LOG
    assert histogram.counts == (10,) * 10


@pytest.mark.parametrize(
    ("of", "low", "high"),
    [
        (IntUniform(-50, 50), -50, 50),
        (Normal(0, 1), 1, 20),
        (Normal(0, 1, low=-3), -3, 20),
        (Normal(0, 1, low=0, high=50), 0, 50),
        (Beta(1, 1), 0, 20),
        (LogNormal(0, 1), 1, 20),
        (Quantized(Uniform(0, 30), 2), 0, 30),
    ],
    ids=lambda item: type(item).__name__,
)
def test_bins_of_an_unbounded_domain_cover_its_values(of: Domain, low: float, high: float) -> None:
    histogram = bins(column(of, list(range(1, 21))))

    assert (histogram.low, histogram.high) == (low, high)
    assert sum(histogram.counts) == 20


def test_listed_values_are_binned_on_the_scale_that_spreads_them() -> None:
    even = tuple(float(point) for point in range(1, 201))
    geometric = tuple(1e-4 * 1.5**step for step in range(20))

    assert bins(column(Choice(even), even)).scale is Scale.LINEAR
    assert bins(column(Choice(geometric), geometric)).scale is Scale.LOG
    assert bins(column(Choice(geometric), geometric)).counts == (2,) * 10
