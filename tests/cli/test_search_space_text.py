"""A search space in words."""

import pytest

from sweepledger.cli.text.plan import domain_text, parameter_rows
from sweepledger.distributions.beta import Beta
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_normal import LogNormal
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.expressions.parser import parse_expression
from sweepledger.structs.domain import Domain
from sweepledger.structs.search_block import ConfigurationList, GridSearch
from sweepledger.structs.space import Condition, Constraint, DerivedValue, Parameter, SearchSpace

EMPTY = SearchSpace(())


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        (Constant(2), "2"), (Constant(None), "null"), (Constant(True), "true"),
        (Choice((0.1, "adam", (64, 64))), "0.1, 'adam', [64, 64]"),
        (Choice(tuple(range(48))), "0, 1, 2, 3, 4, 5, 6, 7, … (48 values)"),
        (Choice(("a", "b"), (0.7, 0.3)), "'a' (70 %), 'b' (30 %)"), (IntUniform(1, 8), "1 … 8, integers"),
        (Uniform(0.0, 0.5), "0 … 0.5, uniform"), (LogUniform(0.0001, 0.1), "0.0001 … 0.1, log-uniform"),
        (Normal(0, 1), "normal, mu 0, sigma 1"),
        (Normal(0.0, 1.5, 0.0, 2.0), "normal, mu 0, sigma 1.5, from 0, to 2"),
        (LogNormal(0, 1), "log-normal, mu 0, sigma 1"), (Beta(2, 5), "beta, a 2, b 5"),
        (Quantized(Uniform(8, 64), 8), "8 … 64, uniform, by 8"),
    ],
)  # fmt: skip
def test_a_domain_is_described_on_one_line(domain: Domain, words: str) -> None:
    assert domain_text(domain) == words


def test_relations_of_parameters_follow_the_parameters() -> None:
    space = SearchSpace(
        (
            Parameter("a", Choice((1, 2))),
            Parameter("b", Choice((3, 4)), (Condition("a", (1, 2)), Condition("c", ("x",)))),
        ),
        zips=(("a", "b"),),
        derived=(DerivedValue("c", parse_expression("a * 2"), "a * 2"),),
        constraints=(Constraint(parse_expression("a < b"), "a < b"),),
    )

    assert list(parameter_rows(GridSearch(space))) == [
        ("a", "1, 2"),
        ("b", "3, 4 when a is 1 or 2 and c is 'x'"),
        ("c", "= a * 2"),
        ("zip", "a, b"),
        ("constraint", "a < b"),
    ]


def test_a_list_is_counted() -> None:
    assert list(parameter_rows(ConfigurationList(EMPTY, ({"a": 1}, {"a": 2, "b": 3})))) == [
        ("a, b", "2 configurations, as listed")
    ]
