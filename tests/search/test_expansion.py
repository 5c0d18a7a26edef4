"""Expansion of a sweep: order, identity, counts, limits, and their problems."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from sweepledger import search
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.uniform import Uniform
from sweepledger.errors import SpecError
from sweepledger.problems import Problem, SourceMap, SourcePosition
from sweepledger.search import Expansion, expansion
from sweepledger.structs import trial as trials_module
from sweepledger.structs.domain import Domain
from sweepledger.structs.expression import (
    Arithmetic,
    Call,
    Comparison,
    Expression,
    ListLiteral,
    Literal,
    Name,
)
from sweepledger.structs.methods import SAMPLERS
from sweepledger.structs.run_config import Resources, RunConfig, Shape
from sweepledger.structs.search_block import ConfigurationList, Design, GridSearch, RandomSearch
from sweepledger.structs.space import Constraint, DerivedValue, Parameter, SearchSpace
from sweepledger.structs.sweep import Budget, Sweep
from sweepledger.structs.values import Value
from tests.sweeps import a_program, a_sweep
from tests.written_specs import good

SOURCE = SourceMap(
    "sweeps/lr.yaml",
    {
        ("search",): SourcePosition("parameters", 4, 1),
        ("search", "constraints", 0): SourcePosition("constraints[0]", 9, 5),
        ("search", "constraints", 1): SourcePosition("constraints[1]", 10, 5),
        ("search", "derived", "q"): SourcePosition("derived.q", 7, 3),
        ("budget", "max_trials"): SourcePosition("budget.max_trials", 6, 3),
    },
)


def a_space(*constraints: Constraint, **domains: Domain) -> SearchSpace:
    parameters = tuple(Parameter(name, domain) for name, domain in domains.items())
    return SearchSpace(parameters, constraints=constraints)


def less(name: str, limit: float) -> Constraint:
    return Constraint(Comparison(Name(name, 0), (("<", Literal(limit)),)), f"{name} < {limit}")


def of(design: Design, **changes: object) -> Sweep:
    return a_sweep(design=design, **changes)


def expansion_of(design: Design, **changes: object) -> Expansion:
    made = search.explore(of(design, **changes))
    assert isinstance(made, Expansion), made
    return made


def problems(design: Design, **changes: object) -> tuple[Problem, ...]:
    made = search.explore(of(design, **changes), SOURCE)
    assert isinstance(made, tuple), made
    return made


def values(expansion: Expansion) -> list[tuple[Value, ...]]:
    return [tuple(assignment.values()) for assignment in expansion.configurations]


def ids(sweep: Sweep) -> list[str]:
    program = a_program(a_sweep())
    return [trial.id for trial in expansion.expand(sweep, program)]


# Order


def derived(expression: Expression, *inputs: Value) -> list[object]:
    space = replace(a_space(a=Choice(inputs)), derived=(DerivedValue("b", expression, "…"),))
    return [row[1] for row in values(expansion_of(GridSearch(space)))]


A = Name("a", 0)


def test_derived_values_come_last_and_are_rounded_to_fifteen_digits() -> None:
    third = DerivedValue("third", Arithmetic("/", A, Literal(3)), "a / 3")
    space = replace(a_space(a=Choice((1, 3))), derived=(third,))

    assert values(expansion_of(GridSearch(space))) == [(1, 0.333333333333333), (3, 1)]
    assert derived(Arithmetic("*", A, Literal(3)), 0.1) == [0.3]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (Call("exp", (A,)), 7.389056099),
        (Arithmetic("**", A, Literal(0.5)), 1.414213562),
        (ListLiteral((Call("exp", (A,)), A)), (7.389056099, 2)),
    ],
    ids=str,
)
def test_platform_dependent_results_are_rounded_to_ten_digits(expression: Expression, value: object) -> None:
    assert derived(expression, 2) == [value]


@pytest.mark.parametrize(
    ("parameters", "constraint", "trials"),
    [
        ({name: {"values": [0.1, 0.2]} for name in "ab"}, "a + b <= 0.3", 3),
        ({"a": {"values": [1.1, 0.9]}, "n": {"values": [2, 3]}}, "a * n in [3.3, 1.8]", 2),
        ({"a": {"values": [0.7, 0.1]}, "b": {"values": [0.1]}}, "not (a / b > 7)", 2),
        ({"a": {"geomspace": [1e-3, 1e-1, 3]}, "n": {"values": [3]}}, "a * n in [0.003, 0.3]", 2),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_constraints_compare_decimals(parameters: dict[str, object], constraint: str, trials: int) -> None:
    expansion = expansion_of(good(method="grid", parameters=parameters, constraints=[constraint]).design)

    assert len(expansion.configurations) == trials


# Identity


@pytest.mark.parametrize(
    "other",
    [
        of(GridSearch(a_space(b=Choice(("x", "y")), a=Choice((1, 2))))),
        of(
            GridSearch(a_space(a=Choice((1, 2)), b=Choice(("x", "y")))),
            name="renamed",
            path="sweeps/renamed.yaml",
        ),
        of(GridSearch(a_space(a=Choice((0, 1, 2, 3)), b=Choice(("x", "y", "z"))))),
        of(GridSearch(a_space(a=Choice((1.0, 2.0)), b=Choice(("x", "y"))))),
        of(GridSearch(a_space(a=Choice((1, 2)), b=Choice(("x", "y")))), replicates=3),
    ],
    ids=["order", "name", "values", "kind of number", "replicates"],
)
def test_a_trial_id_depends_on_its_values_only(other: Sweep) -> None:
    sweep = of(GridSearch(a_space(a=Choice((1, 2)), b=Choice(("x", "y")))))

    assert set(ids(sweep)) <= set(ids(other))


def test_replicates_are_neighbours_and_more_of_them_keep_the_first() -> None:
    once = expansion.expand(of(GridSearch(a_space(a=Choice((1, 2))))), a_program(a_sweep()))
    thrice = expansion.expand(of(GridSearch(a_space(a=Choice((1, 2)))), replicates=3), a_program(a_sweep()))

    assert [trial.replicate for trial in thrice] == [0, 1, 2, 0, 1, 2]
    assert {trial.digest for trial in once} < {trial.digest for trial in thrice}


def test_two_trials_with_one_id_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials_module, "ID_DIGITS", 1)

    with pytest.raises(SpecError) as caught:
        ids(of(GridSearch(a_space(a=IntUniform(1, 17)))))

    assert {problem.code for problem in caught.value.problems} == {"trial-id-collision"}


# Counts


def test_a_list_adds_the_constants_that_it_does_not_name() -> None:
    space = a_space(b=Constant("same"))

    listed = expansion_of(ConfigurationList(space, ({"a": 1}, {"a": 2, "b": "own"}, {"a": 1.0})))

    assert [dict(configuration) for configuration in listed.configurations] == [
        {"b": "same", "a": 1},
        {"b": "own", "a": 2},
    ]
    assert listed.count.duplicates == 1


# What is said


@pytest.mark.parametrize(
    ("block", "code", "message"),
    [
        (
            GridSearch(a_space(less("a", 2), less("b", 2), a=Choice((1, 2)), b=Constant(3))),
            "constraint-nothing",
            "must be true for at least one configuration, got none of 2 combinations: b < 2",
        ),
        (
            GridSearch(a_space(Constraint(Name("a", 0), "a"), a=Choice((1, 2)))),
            "expression-failed",
            "cannot be computed: ",
        ),
        (
            GridSearch(a_space(a=IntUniform(1, 4)), cap=3),
            "too-many-trials",
            "must make at most run_cap = 3 configurations, got 4",
        ),
    ],
    ids=["one of two", "no test", "cap of a grid"],
)
def test_an_empty_block_is_a_problem(block: Design, code: str, message: str) -> None:
    (problem,) = problems(block)

    assert (problem.code, problem.line > 0) == (code, True)
    assert problem.message.startswith(message)
    assert problem.hint


def test_an_earlier_constraint_guards_a_later_one() -> None:
    guard = Constraint(Comparison(Name("a", 0), (("!=", Literal(0)),)), "a != 0")
    quotient = Comparison(Arithmetic("/", Literal(1), Name("a", 0)), (("<", Literal(1)),))

    guarded = expansion_of(GridSearch(a_space(guard, Constraint(quotient, "1 / a < 1"), a=Choice((0, 1, 2)))))

    assert values(guarded) == [(2,)]


def codes(errors: Sequence[Problem]) -> list[str]:
    return [problem.code for problem in errors]


def test_an_unbalanced_number_of_sobol_points_has_a_warning() -> None:
    space = a_space(a=Uniform(0, 1))

    assert codes(expansion_of(RandomSearch(SAMPLERS["sobol"], space, seed=1, cap=10)).warnings) == [
        "unbalanced-count"
    ]
    assert expansion_of(RandomSearch(SAMPLERS["sobol"], space, seed=1, cap=16)).warnings == ()


# Limits


GPU = RunConfig(resources=Resources(gpu=1))


@pytest.mark.parametrize(
    ("at", "above", "code"),
    [
        ({"replicates": 10_000}, {"replicates": 20_000}, "too-many-trials"),
        ({"budget": Budget(max_trials=10)}, {"budget": Budget(max_trials=9)}, "budget-exceeded"),
        (
            {"budget": Budget(max_gpu_hours=10), "run": GPU},
            {"budget": Budget(max_gpu_hours=9.9), "run": GPU},
            "budget-exceeded",
        ),
        (
            {"run": RunConfig(shape=Shape.JOBS, parallelism=10)},
            {"run": RunConfig(shape=Shape.JOBS, parallelism=9)},
            "shape-limit",
        ),
        (
            {"run": RunConfig(shape=Shape.JOBS, parallelism=100), "replicates": 10},
            {"run": RunConfig(shape=Shape.JOBS, parallelism=999), "replicates": 11},
            "shape-limit",
        ),
    ],
    ids=["trials", "budget", "hours", "parallelism", "objects"],
)
def test_a_sweep_at_a_limit_is_accepted_and_one_above_it_is_not(
    at: dict[str, object], above: dict[str, object], code: str
) -> None:
    design = GridSearch(a_space(a=IntUniform(1, 10)))

    assert len(expansion_of(design, **at).configurations) == 10
    assert codes(problems(design, **above)) == [code]


@pytest.mark.parametrize("replicates", [1, 2])
def test_a_plain_grid_is_limited_unexpanded(replicates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sweepledger.search.expansion.grid_candidates", None
    )  # not asked for a single combination
    grid = GridSearch(a_space(a=IntUniform(1, 40_000)))
    budget = Budget(max_trials=20)

    (problem,) = problems(grid, budget=budget, replicates=replicates)

    assert problem.message == f"must make at most 20 trials, got {40_000 * replicates}"
    assert (problem.code, problem.path, problem.line) == ("budget-exceeded", "budget.max_trials", 6)


@pytest.mark.parametrize(
    "block",
    [
        GridSearch(a_space(a=IntUniform(1, 200_000))),
        GridSearch(a_space(a=IntUniform(1, 2_000_000))),
    ],
    ids=["trials", "combinations"],
)
def test_a_sweep_above_all_limits_reports_its_budget_too(block: Design) -> None:
    errors = problems(block, budget=Budget(max_trials=20))

    assert sorted(codes(errors)) == ["budget-exceeded", "too-many-trials"]


@pytest.mark.parametrize(
    ("space", "proposed"),
    [
        (a_space(a=IntUniform(1, 4)), True),
        (a_space(less("a", 3), a=IntUniform(1, 4)), False),
        (a_space(a=Choice((1, 2, 3, 4), (0.7, 0.1, 0.1, 0.1))), False),
    ],
    ids=["all of them", "constrained", "weighted"],
)
def test_a_run_cap_is_suggested_only_if_it_is_certain_to_work(space: SearchSpace, *, proposed: bool) -> None:
    (problem,) = problems(RandomSearch(SAMPLERS["random"], space, seed=0, cap=5))

    assert problem.code == "run-cap-unreached"
    assert ("set run_cap: 4" in str(problem.hint)) is proposed
