"""Expansion against its meaning computed naively; benchmarks/brute_force.py tries a hundred times more."""

from hypothesis import given, settings

from sweepledger import search
from sweepledger.problems import Problem
from sweepledger.search import Expansion
from sweepledger.structs.search_block import ConfigurationList, GridSearch
from sweepledger.structs.space import SearchSpace, count_combinations
from tests.search.spaces import hides, lists, meaning, spaces
from tests.sweeps import a_sweep


def explored(design: GridSearch | ConfigurationList) -> Expansion | tuple[Problem, ...]:
    return search.explore(a_sweep(design=design))


def agrees_on_a_space(space: SearchSpace) -> None:
    """Hold a grid's expansion against its meaning: values, kinds, order of assignments and of names."""
    wanted = meaning(GridSearch(space))

    expansion = explored(GridSearch(space))

    if not wanted.accepted:
        assert isinstance(expansion, tuple)
        assert {problem.code for problem in expansion} == {"constraint-nothing"}
    else:
        assert isinstance(expansion, Expansion)
        assert [repr(dict(configuration)) for configuration in expansion.configurations] == [
            repr(assignment) for assignment in wanted.accepted
        ]
        assert hides(space) or expansion.count.candidates == wanted.existing


def agrees_on_a_list(design: ConfigurationList) -> None:
    """Hold the expansion of a list against its meaning: each configuration once, in the order written."""
    expansion = explored(design)

    assert isinstance(expansion, Expansion)
    assert [dict(configuration) for configuration in expansion.configurations] == list(
        meaning(design).accepted
    )
    assert expansion.count.kept == len(expansion.configurations)


@given(lists())
@settings(max_examples=30)
def test_a_list_has_each_configuration_once(design: ConfigurationList) -> None:
    agrees_on_a_list(design)


@given(spaces())
@settings(max_examples=50)
def test_a_grid_is_the_product_without_duplicates(space: SearchSpace) -> None:
    agrees_on_a_space(space)


@given(spaces())
@settings(max_examples=50)
def test_the_computed_count_equals_the_number_of_configurations(space: SearchSpace) -> None:
    existing = meaning(GridSearch(space)).existing

    counted = count_combinations(space)

    if hides(space):
        assert counted >= existing
    else:
        assert counted == existing
