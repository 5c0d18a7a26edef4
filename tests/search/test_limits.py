"""Limits of work and size: estimated before the expansion, and hopeless searches end early."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from sweepledger import search
from sweepledger.distributions.beta import Beta
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.exact_quantiles import normal
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_normal import LogNormal
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.problems import Problem
from sweepledger.search import Expansion, estimates
from sweepledger.search.estimates import MAX_WORK, estimate_work
from sweepledger.search.exploration import EARLY_CHECK
from sweepledger.search.unit_cube import UndrawableError, axis_columns
from sweepledger.structs.domain import Domain
from sweepledger.structs.expression import Arithmetic, Comparison, Expression, Literal, Name
from sweepledger.structs.methods import SAMPLERS
from sweepledger.structs.search_block import Design, GridSearch, RandomSearch
from sweepledger.structs.space import Condition, Constraint, DerivedValue, Parameter, SearchSpace
from tests.sweeps import a_sweep

UNIT = Parameter("x", Uniform(0, 1))


def tens(count: int) -> tuple[Parameter, ...]:
    return tuple(Parameter(f"p{number}", IntUniform(0, 9)) for number in range(count))


def below(term: Expression, limit: float) -> Constraint:
    return Constraint(Comparison(term, (("<", Literal(limit)),)), "a sum is small")


def sum_of(names: Sequence[str]) -> Expression:
    first, *others = (Name(name, 0) for name in names)
    total: Expression = first
    for other in others:
        total = Arithmetic("+", total, other)
    return total


def random(space: SearchSpace, cap: int) -> RandomSearch:
    return RandomSearch(SAMPLERS["random"], space, seed=0, cap=cap)


def refused(design: Design, **changes: object) -> list[Problem]:
    result = search.explore(a_sweep(design=design, **changes))
    assert not isinstance(result, Expansion)
    return list(result)


def explored(design: Design) -> Expansion:
    result = search.explore(a_sweep(design=design))
    assert isinstance(result, Expansion), result
    return result


def codes(problems: Sequence[Problem]) -> list[str]:
    return [problem.code for problem in problems]


# Work


def test_a_million_combinations_may_have_a_short_constraint_and_not_a_long_one() -> None:
    names = [parameter.name for parameter in tens(6)]
    short, long = below(sum_of(names), 3), below(sum_of(names * 4), 3)

    assert estimate_work(GridSearch(SearchSpace(tens(6), constraints=(short,)))).work <= MAX_WORK
    assert codes(refused(GridSearch(SearchSpace(tens(6), constraints=(long,))))) == ["too-much-work"]


def test_hopeless_draws_end_early() -> None:
    space = SearchSpace((UNIT,), constraints=(below(Name("x", 0), 1e-4),))

    (problem,) = refused(random(space, 100_000))

    assert problem.code == "run-cap-unreached"
    looked_at = int(problem.message.split(" draws")[0].split()[-1])
    assert EARLY_CHECK <= looked_at < 2 * EARLY_CHECK


# Tables


@pytest.mark.parametrize("replicates", [1, 10])
def test_trials_times_columns_are_limited(replicates: int) -> None:
    space = SearchSpace(tuple(Parameter(f"x{number}", Uniform(0, 1)) for number in range(21)))

    (problem,) = refused(random(space, 100_000 // replicates), replicates=replicates)

    assert problem.code == "too-large-table"
    assert "got 100000 trials * 21 columns" in problem.message


def test_columns_are_counted_after_the_expansion_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "MAX_CELLS", 20_000)
    space = SearchSpace((*tens(3), *(Parameter(f"c{number}", Constant(1)) for number in range(25))))
    constrained = replace(space, constraints=(below(Name("p0", 0), 8),))

    (problem,) = refused(GridSearch(constrained))

    assert problem.code == "too-large-table"
    assert "trials or more" in problem.message


def test_a_long_text_in_every_trial_is_rejected_before_the_expansion() -> None:
    space = SearchSpace((*tens(5), Parameter("text", Constant("x" * 4_000))))

    (problem,) = refused(GridSearch(space))

    assert problem.code == "too-large-table"
    assert "MiB = 100000 trials * 4002 bytes or more" in problem.message


def test_long_texts_in_some_trials_are_rejected_after_the_expansion() -> None:
    texts = Choice(("x", "y" * 4_000, "z" * 4_000))
    space = SearchSpace((UNIT, Parameter("text", texts)))

    (problem,) = refused(random(space, 50_000))

    assert problem.code == "too-large-table"
    assert "64 MiB" in problem.message


# Draws


def test_a_distant_bound_takes_no_longer_than_no_bound() -> None:
    near = [normal(0.3, 0, 1, -0.5, bounds=(-2, high)) for high in (1e308, None)]

    assert near[0] == near[1]


@pytest.mark.parametrize("domain", [Beta(2, 1e300), Quantized(Beta(1e16, 1e308), 1)], ids=repr)
def test_only_finite_numbers_are_drawn(domain: Beta | Quantized) -> None:
    columns = axis_columns((Parameter("x", domain),))

    with pytest.raises(UndrawableError):
        columns([0.5, 0.25])


def test_a_draw_that_is_not_finite_is_a_problem() -> None:
    (problem,) = refused(random(SearchSpace((Parameter("x", Beta(2, 1e300)),)), 5))

    assert problem.code == "out-of-range"
    assert "'x'" in problem.message


# What never is


def conditional() -> SearchSpace:
    optimizer = Parameter("optimizer", Choice(("sgd", "adam")))
    a = Parameter("a", Choice((1, 2)), (Condition("optimizer", ("sgd",)),))
    b = Parameter("b", Constant(1), (Condition("optimizer", ("adam",)), Condition("a", (1,))))
    return SearchSpace((optimizer, a, b))


def test_a_derived_value_that_never_exists_has_a_warning() -> None:
    space = replace(conditional(), derived=(DerivedValue("d", sum_of("ab"), "a + b"),))

    assert codes(explored(GridSearch(space)).warnings) == ["when-unreachable", "when-unreachable"]


def test_a_constraint_that_is_never_evaluated_has_a_warning() -> None:
    space = replace(conditional(), constraints=(below(sum_of("ab"), 1), below(Name("a", 0), 2)))

    result = explored(GridSearch(space))

    (problem,) = [warning for warning in result.warnings if warning.code == "constraint-everything"]
    assert problem.message.startswith("is evaluated for none of 3 combinations")
    assert result.count.unevaluated == [3, 1]
    assert result.count.rejections == [0, 1]


@pytest.mark.parametrize(
    "domain",
    [
        Uniform(0.1, 0.10000000001),
        Uniform(1e9, 1e9 + 0.5),
        LogUniform(1e-5, 1.0000000002e-5),
        Normal(1.0, 1e-12),
        LogNormal(0.0, 1e-11),
        Quantized(Uniform(0.6, 1.4), 1.0),
    ],
    ids=str,
)
def test_a_domain_whose_draws_are_equal_by_their_digits_is_refused(domain: Domain) -> None:
    space = SearchSpace((UNIT, Parameter("narrow", domain)))

    (problem,) = refused(random(space, cap=2))

    assert problem.code == "single-value"
    assert "narrow" in problem.message
