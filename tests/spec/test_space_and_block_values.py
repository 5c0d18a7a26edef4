"""Values of search spaces, designs and sweeps, and their invariants."""

from typing import Any

import pytest

from sweepledger.distributions import build_domain
from sweepledger.distributions.beta import Beta
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_normal import LogNormal
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.structs.domain import Domain
from sweepledger.structs.methods import SAMPLERS, Sampler
from sweepledger.structs.search_block import ConfigurationList, GridSearch, RandomSearch
from sweepledger.structs.space import Condition, Parameter, SearchSpace
from sweepledger.structs.sweep import Budget
from tests.written_specs import bad, good

E = 2.718281828459045


@pytest.mark.parametrize(
    ("document", "built"),
    [
        ({"value": None}, Constant(None)),
        ({"value": 3, "distribution": "constant"}, Constant(3)),
        ({"values": [1, "a", [2, 3]]}, Choice((1, "a", (2, 3)))),
        ({"values": ["a", "b"], "distribution": "categorical"}, Choice(("a", "b"))),
        ({"values": ["a", "b"], "probabilities": [0.25, 0.75]}, Choice(("a", "b"), (0.25, 0.75))),
        (
            {"values": [1], "probabilities": [1], "distribution": "categorical_w_probabilities"},
            Choice((1,), (1.0,)),
        ),
        ({"min": 1, "max": 8}, IntUniform(1, 8)),
        ({"min": 1.0, "max": 8.0, "distribution": "int_uniform"}, IntUniform(1, 8)),
        ({"min": 0, "max": 0.5}, Uniform(0, 0.5)),
        ({"min": 0.0, "max": 1.0}, Uniform(0, 1)),
        ({"min": 0, "max": 1, "distribution": "uniform"}, Uniform(0, 1)),
        ({"min": 1, "max": 8, "distribution": "q_uniform"}, Quantized(Uniform(1, 8), 1)),
        ({"min": 0, "max": 1, "distribution": "log_uniform"}, LogUniform(1, E)),
        ({"min": 0.1, "max": 1, "distribution": "log_uniform_values"}, LogUniform(0.1, 1)),
        ({"min": 0, "max": 1, "distribution": "q_log_uniform", "q": 2}, Quantized(LogUniform(1, E), 2)),
        (
            {"min": 1, "max": 9, "distribution": "q_log_uniform_values", "q": 0.5},
            Quantized(LogUniform(1, 9), 0.5),
        ),
        ({"min": -1, "max": 0, "distribution": "inv_log_uniform"}, LogUniform(1, E)),
        ({"min": 0.1, "max": 1, "distribution": "inv_log_uniform_values"}, LogUniform(0.1, 1)),
        ({"distribution": "normal"}, Normal(0, 1)),
        ({"distribution": "normal", "mu": 2, "sigma": 3}, Normal(2, 3)),
        ({"distribution": "q_normal", "mu": 2}, Quantized(Normal(2, 1), 1)),
        ({"distribution": "truncated_normal", "min": 0}, Normal(0, 1, low=0)),
        ({"distribution": "truncated_normal", "max": 2, "mu": 1}, Normal(1, 1, high=2)),
        ({"distribution": "log_normal"}, LogNormal(0, 1)),
        ({"distribution": "q_log_normal", "q": 0.1}, Quantized(LogNormal(0, 1), 0.1)),
        ({"distribution": "beta"}, Beta(1, 1)),
        ({"distribution": "q_beta", "a": 2, "b": 5, "q": 0.25}, Quantized(Beta(2, 5), 0.25)),
        ({"min": 0.1, "max": 0.3, "step": 0.1}, Choice((0.1, 0.2, 0.3))),
        ({"min": -1, "max": 0, "count": 2, "distribution": "inv_log_uniform"}, Choice((1, 2.718281828))),
        ({"geomspace": [1, 4, 3]}, Choice((1, 2, 4))),
    ],
    ids=str,
)
def test_each_form_becomes_one_domain(document: dict[str, Any], built: Domain) -> None:
    assert build_domain(document) == built


def space(**changes: Any) -> SearchSpace:
    design = good(**changes).design
    return design.space


def test_nested_parameters_have_dotted_names_and_the_conditions_of_their_groups() -> None:
    result = space(
        parameters={
            "optimizer": {"values": ["adam", "sgd"]},
            "sgd": {
                "when": {"optimizer": "sgd"},
                "parameters": {
                    "nesterov": {"values": [True, False]},
                    "momentum": {"values": [0.9, 0.99], "when": {"sgd.nesterov": [True]}},
                },
            },
            "layers": {"values": [[64], [64, 64]]},
            "skip": {"values": [1, 2], "when": {"layers": [[64, 64]]}},
        }
    )

    is_sgd = Condition("optimizer", ("sgd",))
    assert result.parameters == (
        Parameter("optimizer", Choice(("adam", "sgd"))),
        Parameter("sgd.nesterov", Choice((True, False)), (is_sgd,)),
        Parameter("sgd.momentum", Choice((0.9, 0.99)), (is_sgd, Condition("sgd.nesterov", (True,)))),
        Parameter("layers", Choice(((64,), (64, 64)))),
        Parameter("skip", Choice((1, 2)), (Condition("layers", ((64, 64),)),)),
    )


def test_derived_values_stand_after_those_they_use_and_all_else_as_written() -> None:
    result = space(
        derived={"d": "c + b", "a": "rate", "b": "2 * a", "c": "a + 1"},
        constraints=["rate < 0.2", "rate > 0"],
    )

    assert [derived.name for derived in result.derived] == ["a", "c", "b", "d"]
    assert result.derived[3].text == "c + b"
    assert [constraint.text for constraint in result.constraints] == ["rate < 0.2", "rate > 0"]


@pytest.mark.parametrize("method", list(SAMPLERS.values()))
def test_a_method_that_draws_has_its_seed_and_its_cap(method: Sampler) -> None:
    design = good(method=str(method), seed=7.0, run_cap=8.0).design

    assert isinstance(design, RandomSearch)
    assert (design.method, repr(design.seed), repr(design.cap)) == (method, "7", "8")
    assert isinstance(grid := good(run_cap=5).design, GridSearch)
    assert grid.cap == 5


def test_a_list_has_the_assignments_as_written() -> None:
    design = good(
        method="list",
        parameters={"epochs": {"value": 2}},
        assignments=[{"a": 1, "b": [1, 2]}, {"b": None, "epochs": 3}],
    ).design

    assert isinstance(design, ConfigurationList)
    assert [dict(assignment) for assignment in design.assignments] == [
        {"a": 1, "b": (1, 2)},
        {"b": None, "epochs": 3},
    ]
    assert design.names == ("a", "b", "epochs")
    assert design.space.parameters == (Parameter("epochs", Constant(2)),)


def test_replicates_and_budget_are_numbers() -> None:
    sweep = good(
        replicates=2.0, budget={"max_trials": 10, "max_gpu_hours": 3}, command=["train", "${seed}", "${args}"]
    )

    assert repr(sweep.replicates) == "2"
    assert sweep.budget == Budget(10, 3.0)
    assert good().budget == Budget()


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"linspace": [1, 1.0000000000000002, 9]}, "linspace"),
        ({"geomspace": [12345678901, 12345678903, 3]}, "geomspace"),
        ({"min": 10**15, "max": 10**15 + 3, "step": 0.3}, "step"),
        ({"min": 1e-14, "max": 2e-14, "count": 5, "distribution": "log_uniform"}, "count"),
    ],
)
def test_points_that_rounding_makes_one_are_refused(document: dict[str, Any], key: str) -> None:
    assert (f"parameters.a.{key}", "range-count") in bad(parameters={"a": document})
