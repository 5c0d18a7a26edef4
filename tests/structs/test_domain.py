"""What a domain cannot be."""

from collections.abc import Callable

import pytest

from sweepledger.distributions.beta import Beta
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_normal import LogNormal
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.structs.domain import Domain

SUM = "probabilities must be 0 or more and sum to 1"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Choice(()), "a choice must have at least one value, but got none"),
        (lambda: Choice((1, 2), (1.0,)), "a choice must have a probability for each value, but got 1 for 2"),
        (lambda: Choice((1, 2), (0.5, 0.6)), rf"{SUM}, but got \(0.5, 0.6\)"),
        (lambda: Choice((1, 2), (1.5, -0.5)), rf"{SUM}, but got \(1.5, -0.5\)"),
        (lambda: IntUniform(3, 3), "low < high must hold, but got 3 and 3"),
        (lambda: Uniform(2, 1), "low < high must hold, but got 2 and 1"),
        (lambda: LogUniform(1, 0.5), "low < high must hold, but got 1 and 0.5"),
        (lambda: LogUniform(0, 1), "0 < low must hold on a logarithmic scale, but got 0"),
        (lambda: Normal(0, 0), "sigma must be more than 0, but got 0"),
        (lambda: Normal(0, 1, 2, 1), "low < high must hold, but got 2 and 1"),
        (lambda: LogNormal(0, -1), "sigma must be more than 0, but got -1"),
        (lambda: Beta(0, 1), "a must be more than 0, but got 0"),
        (lambda: Beta(1, 0), "b must be more than 0, but got 0"),
        (lambda: Quantized(Uniform(0, 1), 0), "q must be more than 0, but got 0"),
    ],
)
def test_a_domain_that_holds_nothing_cannot_be_made(make: Callable[[], Domain], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_thirds_sum_to_one() -> None:
    assert Choice((1, 2, 3), (0.3333333333, 0.3333333333, 0.3333333334)).listed == (1, 2, 3)


def test_a_normal_may_be_bounded_on_one_side() -> None:
    assert Normal(0, 1, low=2).high is None
