"""Expansion against its meaning computed naively; benchmarks/brute_force.py tries a hundred times more."""

import pytest
from hypothesis import given, settings

from sweepledger import search
from sweepledger.problems import Problem
from sweepledger.search import Expansion
from sweepledger.structs.combinations import count_combinations
from sweepledger.structs.search_block import ConfigurationList, GridSearch
from sweepledger.structs.space import SearchSpace
from sweepledger.structs.values import canonical_json
from tests.search.spaces import hides, meaning, several_blocks, spaces
from tests.sweeps import a_sweep


def explored(*blocks: GridSearch | ConfigurationList) -> Expansion | tuple[Problem, ...]:
    return search.explore(a_sweep(blocks=blocks))


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
        assert hides(space) or expansion.blocks[0].candidates == wanted.existing


def agrees_on_several(blocks: tuple[GridSearch | ConfigurationList, ...]) -> None:
    """Hold several blocks against the naive way: one after the other, each assignment once."""
    meanings = [meaning(block).accepted for block in blocks]
    wanted = {
        canonical_json(assignment): assignment
        for accepted in reversed(meanings)
        for assignment in reversed(accepted)
    }

    expansion = explored(*blocks)

    if not all(meanings):
        assert isinstance(expansion, tuple)
    else:
        assert isinstance(expansion, Expansion)
        assert {canonical_json(configuration) for configuration in expansion.configurations} == set(wanted)
        assert sum(count.kept for count in expansion.blocks) == len(expansion.configurations) == len(wanted)
        for count, accepted in zip(expansion.blocks, meanings, strict=True):
            assert count.candidates - count.rejected >= len(accepted) >= count.kept


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


@given(several_blocks())
@settings(max_examples=30)
def test_blocks_come_in_order_and_common_configurations_count_once(
    blocks: tuple[GridSearch | ConfigurationList, ...],
) -> None:
    agrees_on_several(blocks)


@pytest.mark.full_suite("more random spaces")
@given(spaces())
@settings(max_examples=2000)
def test_more_grids_are_the_product_without_duplicates(space: SearchSpace) -> None:
    agrees_on_a_space(space)


@pytest.mark.full_suite("more random spaces")
@given(several_blocks())
@settings(max_examples=500)
def test_more_blocks_come_in_order(blocks: tuple[GridSearch | ConfigurationList, ...]) -> None:
    agrees_on_several(blocks)
