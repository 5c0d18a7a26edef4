"""A search space in words."""

import pytest

from generator.cli.domains import heading, in_words, rows
from generator.reader.expression import parse
from generator.structs.domain import (
    Beta,
    Choice,
    Constant,
    Domain,
    IntUniform,
    LogNormal,
    LogUniform,
    Normal,
    Quantized,
    Uniform,
)
from generator.structs.space import Condition, Constraint, Derived, Parameter, SearchSpace
from generator.structs.sweep import Block, Draw, Grid, Listing, Sampler

EMPTY = SearchSpace(())


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        (Constant(2), "2"),
        (Constant(None), "null"),
        (Constant(True), "true"),
        (Choice((0.1, "adam", (64, 64))), "0.1, 'adam', [64, 64]"),
        (Choice(tuple(range(48))), "0, 1, 2, 3, 4, 5, 6, 7, … (48 values)"),
        (Choice(("a", "b"), (0.7, 0.3)), "'a' (70 %), 'b' (30 %)"),
        (IntUniform(1, 8), "1 … 8, integers"),
        (Uniform(0.0, 0.5), "0 … 0.5, uniform"),
        (LogUniform(0.0001, 0.1), "0.0001 … 0.1, log-uniform"),
        (Normal(0, 1), "normal, mu 0, sigma 1"),
        (Normal(0.0, 1.5, 0.0, 2.0), "normal, mu 0, sigma 1.5, from 0, to 2"),
        (LogNormal(0, 1), "log-normal, mu 0, sigma 1"),
        (Beta(2, 5), "beta, a 2, b 5"),
        (Quantized(Uniform(8, 64), 8), "8 … 64, uniform, by 8"),
    ],
)
def test_a_domain_is_said_in_a_line(domain: Domain, words: str) -> None:
    assert in_words(domain) == words


def test_what_ties_parameters_together_stands_below_them() -> None:
    space = SearchSpace(
        (
            Parameter("a", Choice((1, 2))),
            Parameter("b", Choice((3, 4)), (Condition("a", (1, 2)), Condition("c", ("x",)))),
        ),
        zips=(("a", "b"),),
        derived=(Derived("c", parse("a * 2"), "a * 2"),),
        constraints=(Constraint(parse("a < b"), "a < b"),),
    )

    assert list(rows(Grid(space))) == [
        ("a", "1, 2"),
        ("b", "3, 4 when a is 1 or 2 and c is 'x'"),
        ("c", "= a * 2"),
        ("zip", "a, b"),
        ("constraint", "a < b"),
    ]


def test_a_list_is_counted() -> None:
    assert list(rows(Listing(EMPTY, ({"a": 1}, {"a": 2, "b": 3})))) == [("a, b", "2 assignments, as listed")]


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (Grid(EMPTY), "grid"),
        (Grid(EMPTY, cap=5), "grid, at most 5"),
        (Grid(EMPTY, seed=1), "grid, shuffled by seed 1"),
        (Grid(EMPTY, cap=5, seed=1), "grid, shuffled by seed 1, the first 5"),
        (Draw(Sampler.SOBOL, EMPTY, 3, 16), "sobol, 16 by seed 3"),
        (Listing(EMPTY, ()), "list"),
    ],
)
def test_a_block_says_how_it_finds_its_assignments(block: Block, words: str) -> None:
    assert heading(block) == words
