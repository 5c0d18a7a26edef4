"""Quantiles before rounding equal those of W&B's `sweeps` package at 99 points."""

import math
import warnings
from typing import Any

import pytest

from sweepledger.distributions.beta import Beta
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.continuous import Continuous
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_normal import LogNormal
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.rounding import LEAST
from sweepledger.distributions.uniform import Uniform
from sweepledger.structs.domain import Domain

POINTS = [number / 100 for number in range(1, 100)]


def wandbs(distribution: str, **keys: Any) -> dict[str, Any]:
    return {"distribution": distribution, **keys}


CONTINUOUS: list[tuple[dict[str, Any], Continuous]] = [
    (wandbs("uniform", min=-0.5, max=2.5), Uniform(-0.5, 2.5)),
    (wandbs("log_uniform", min=-9.5, max=1.5), LogUniform(math.exp(-9.5), math.exp(1.5))),
    (wandbs("log_uniform_values", min=1e-5, max=0.1), LogUniform(1e-5, 0.1)),
    (wandbs("inv_log_uniform", min=1.5, max=7.0), LogUniform(math.exp(-7), math.exp(-1.5))),
    (wandbs("inv_log_uniform_values", min=1e-3, max=0.5), LogUniform(1e-3, 0.5)),
    (wandbs("normal"), Normal(0, 1)),
    (wandbs("normal", mu=3.0, sigma=0.2), Normal(3, 0.2)),
    (wandbs("log_normal"), LogNormal(0, 1)),
    (wandbs("log_normal", mu=-1.0, sigma=0.5), LogNormal(-1, 0.5)),
    (wandbs("beta"), Beta(1, 1)),
    (wandbs("beta", a=2, b=5), Beta(2, 5)),
]
# Sizes prime to 100: where a point falls on a step, W&B takes the value before it, and we the one after.
DISCRETE: list[tuple[dict[str, Any], Domain]] = [
    (wandbs("constant", value=3), Constant(3)),
    (wandbs("categorical", values=["a", "b", "c"]), Choice(("a", "b", "c"))),
    (
        wandbs("categorical_w_probabilities", values=["a", "b", "c"], probabilities=[0.125, 0.25, 0.625]),
        Choice(("a", "b", "c"), (0.125, 0.25, 0.625)),
    ),
    (wandbs("int_uniform", min=-2, max=4), IntUniform(-2, 4)),
    (wandbs("q_uniform", min=0, max=30, q=7), Quantized(Uniform(0, 30), 7)),
    (wandbs("q_uniform", min=0.0, max=1.0, q=0.25), Quantized(Uniform(0, 1), 0.25)),
    (wandbs("q_log_uniform", min=0.0, max=5.0, q=2), Quantized(LogUniform(1, math.exp(5)), 2)),
    (wandbs("q_log_uniform_values", min=1.0, max=128.0, q=1.0), Quantized(LogUniform(1, 128), 1.0)),
    (wandbs("q_normal", mu=1.0, sigma=2.0, q=0.3), Quantized(Normal(1, 2), 0.3)),
    (wandbs("q_log_normal", mu=2.0, sigma=1.0, q=1), Quantized(LogNormal(2, 1), 1)),
    (wandbs("q_beta", a=2, b=5, q=0.1), Quantized(Beta(2, 5), 0.1)),
]


def their_class() -> Any:
    with warnings.catch_warnings():
        # It was written for an older pydantic, and says so when imported.
        warnings.simplefilter("ignore")
        params = pytest.importorskip("sweeps.params", reason="skipped: the package sweeps is not installed")
    return params.HyperParameter


def theirs(config: dict[str, Any]) -> Any:
    return their_class()("x", config)


def name(case: Any) -> str:
    return str(case.get("distribution")) if isinstance(case, dict) else ""


@pytest.mark.parametrize(("config", "domain"), CONTINUOUS, ids=name)
def test_continuous_quantiles_equal_wandbs(config: dict[str, Any], domain: Continuous) -> None:
    parameter = theirs(config)

    for u in POINTS:
        assert domain.unrounded().fast(u or LEAST) == pytest.approx(
            float(parameter.ppf(u)), rel=1e-9, abs=1e-9
        )


@pytest.mark.parametrize(("config", "domain"), DISCRETE, ids=name)
def test_discrete_quantiles_are_those_of_the_sweeps_package(config: dict[str, Any], domain: Domain) -> None:
    parameter = theirs(config)

    for u in POINTS:
        expected = parameter.ppf(u)
        is_text = isinstance(expected, str)
        assert domain.quantile()(u) == (expected if is_text else pytest.approx(expected, rel=1e-9, abs=1e-9))


def test_every_kind_of_the_sweeps_package_is_compared() -> None:
    kinds = {value for key, value in vars(their_class()).items() if key.isupper()}

    compared = {theirs(config).type for config, _ in [*CONTINUOUS, *DISCRETE]}

    assert compared == kinds
