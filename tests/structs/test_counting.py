"""Sizes and counts of spaces by arithmetic; tests/search/test_brute_force.py counts random ones."""

import pytest

from sweepledger.distributions.beta import Beta
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.structs.domain import Domain, StepRange
from sweepledger.structs.space import Condition, Dimension, Parameter, SearchSpace, count_combinations


@pytest.mark.parametrize(
    ("domain", "count"),
    [
        (Constant(1), 1),
        (Choice((1, "x", None)), 3),
        (IntUniform(-2, 2), 5),
        (IntUniform(1, 2**53), 2**53),
        (Quantized(Uniform(0, 1), 0.1), 10),
        (Quantized(Uniform(0, 1), 0.3), 4),
        (Quantized(Uniform(0.05, 0.95), 0.1), 9),
        (Quantized(LogUniform(1, 10), 1), None),
        (Uniform(0, 1), None),
        (Beta(1, 1), None),
    ],
    ids=str,
)
def test_a_domain_has_as_many_values_as_a_grid_would_try(domain: Domain, count: int | None) -> None:
    can_list = domain.grid_values is not None

    assert (Dimension.of((Parameter("x", domain),)).size if can_list else None) == count


def test_steps_are_exact_decimals() -> None:
    steps = StepRange.between(0, 1, 0.1)

    assert [steps[at] for at in range(10)] == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert 0.3 in steps
    assert 1 not in steps
    assert True not in steps


def test_too_many_ways_for_conditions_to_turn_out_give_an_upper_bound() -> None:
    parents = [Parameter(f"p{at}", IntUniform(0, 1)) for at in range(16)]
    when = tuple(Condition(parent.name, (1,)) for parent in parents)

    assert count_combinations(SearchSpace((*parents, Parameter("c", IntUniform(1, 10), when)))) == 2**16 * 10
