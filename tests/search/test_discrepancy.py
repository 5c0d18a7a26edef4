"""Points of configurations in the unit cube, and their discrepancy."""

import pytest

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.uniform import Uniform
from sweepledger.search.unit_cube import discrepancy, unit_points
from sweepledger.structs.methods import SAMPLERS, Sampler
from tests.search.conformance import a_space, draw_assignments


def test_each_axis_gives_a_coordinate_and_constants_give_none() -> None:
    space = a_space(
        ("a", "b"),
        lr=LogUniform(1e-4, 1e-2),
        a=Choice((1, 1, 2, 2)),
        fixed=Constant(3),
        b=Choice(("x", "y", "x", "y")),
        n=IntUniform(0, 9),
    )

    points = unit_points(space, [{"lr": 1e-3, "a": 1.0, "b": "y", "fixed": 3, "n": 2}])

    assert points == [pytest.approx([0.5, 0.375, 0.25])]


def test_a_parameter_that_some_configurations_lack_has_no_coordinate() -> None:
    space = a_space(("a", "b"), x=Uniform(0, 1), y=Uniform(0, 1), a=Choice((1, 2)), b=Choice((1, 2)))
    first = {"x": 0.25, "y": 0.5, "a": 1, "b": 1}

    points = unit_points(space, [first, {"x": 0.5, "a": 2}])

    assert points == [[0.25], [0.5]]


@pytest.mark.parametrize("sampler", [sampler for sampler in SAMPLERS.values() if sampler.is_even])
def test_quasi_random_methods_have_less_discrepancy_than_random_draws(sampler: Sampler) -> None:
    space = a_space(x=Uniform(0, 1), lr=LogUniform(1e-5, 0.1))
    values = {
        method: discrepancy(unit_points(space, draw_assignments(method, space, 256)))
        for method in (sampler, SAMPLERS["random"])
    }

    even, random = values[sampler], values[SAMPLERS["random"]]
    assert even is not None
    assert random is not None
    assert even < random / 2


def test_discrepancy_requires_points_and_axes() -> None:
    assert discrepancy([]) is None
    assert discrepancy(unit_points(a_space(x=Constant(1)), [{"x": 1}])) is None
