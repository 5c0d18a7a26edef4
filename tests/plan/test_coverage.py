import pytest

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.uniform import Uniform
from sweepledger.plan.coverage import ValueCounts, coverage
from sweepledger.structs.space import Parameter, SearchSpace
from sweepledger.structs.values import Value
from tests.plan.spaces import column, counts, of_domains, of_space, when


def test_true_is_not_one_and_null_is_not_nothing() -> None:
    values: list[Value] = [True, 1, None, "", 1.0, False]

    (parameter,) = column(Choice((True, 1, None, "", False)), values).parameters

    assert isinstance(parameter.values, ValueCounts)
    assert [(repr(value), count) for value, count in parameter.values.values] == [
        ("True", 1),
        ("1", 2),
        ("None", 1),
        ("''", 1),
        ("False", 1),
    ]


def test_an_integer_range_of_few_values_is_counted_one_by_one_with_its_gaps() -> None:
    result = column(IntUniform(1, 4), [4, 1, 4])

    assert list(counts(result)["x"].items()) == [(1, 1), (2, 0), (3, 0), (4, 2)]


def test_a_choice_reduced_to_one_value_by_constraints_is_not_a_constant() -> None:
    result = column(Choice((1, 2)), [1, 1])

    assert result.constants == ()
    assert counts(result) == {"x": {1: 2, 2: 0}}


def test_a_conditional_parameter_shows_how_many_configurations_have_it() -> None:
    optimizer = Parameter("optimizer", Choice(("adam", "sgd")))
    momentum = when("momentum", Choice((0.8, 0.9)), "optimizer", "sgd")
    sweep = of_space(SearchSpace((optimizer, momentum)))

    result = coverage(
        sweep,
        [{"optimizer": "adam"}, {"optimizer": "sgd", "momentum": 0.8}, {"optimizer": "sgd", "momentum": 0.9}],
    )

    assert [
        (parameter.name, parameter.configurations, parameter.conditional) for parameter in result.parameters
    ] == [("optimizer", 3, False), ("momentum", 2, True)]


def test_zipped_parameters_name_each_other() -> None:
    a, b, c = (Parameter(name, Choice((1, 2))) for name in "abc")

    result = coverage(of_space(SearchSpace((a, b, c), zips=(("a", "c"),))), [{"a": 1, "b": 2, "c": 1}])

    assert {parameter.name: parameter.zipped_with for parameter in result.parameters} == {
        "a": ("c",),
        "b": (),
        "c": ("a",),
    }


@pytest.mark.parametrize("assignments", [[], [{}]], ids=["none", "one without values"])
def test_a_sweep_without_parameters_has_coverage(assignments: list[dict[str, Value]]) -> None:
    result = coverage(of_domains(x=Uniform(0, 1)), assignments)

    assert result.configurations == len(assignments)
    assert counts(result) == {"x": {}}
