"""Expansion against its meaning computed naively; benchmarks/brute_force.py tries a hundred times more."""

from hypothesis import given, settings

from generator import search
from generator.problems import Problem
from generator.search import Expansion
from generator.structs.counting import combinations
from generator.structs.space import SearchSpace
from generator.structs.sweep import Grid, Listing
from generator.structs.values import canonical_json
from tests.search.spaces import hides, meaning, several_blocks, spaces
from tests.sweeps import a_sweep


def explored(*blocks: Grid | Listing) -> Expansion | tuple[Problem, ...]:
    return search.explore(a_sweep(blocks=blocks))


def agrees_on_a_space(space: SearchSpace) -> None:
    """Hold a grid's expansion against its meaning: values, kinds, order of assignments and of names."""
    wanted = meaning(Grid(space))

    found = explored(Grid(space))

    if not wanted.accepted:
        assert isinstance(found, tuple)
        assert {problem.code for problem in found} == {"constraint-nothing"}
    else:
        assert isinstance(found, Expansion)
        assert [repr(dict(one)) for one in found.assignments] == [repr(one) for one in wanted.accepted]
        assert hides(space) or found.blocks[0].candidates == wanted.existing


def agrees_on_several(blocks: tuple[Grid | Listing, ...]) -> None:
    """Hold several blocks against the naive way: one after the other, each assignment once."""
    meanings = [meaning(block).accepted for block in blocks]
    wanted = {canonical_json(one): one for accepted in reversed(meanings) for one in reversed(accepted)}

    found = explored(*blocks)

    if not all(meanings):
        assert isinstance(found, tuple)
    else:
        assert isinstance(found, Expansion)
        assert {canonical_json(one) for one in found.assignments} == set(wanted)
        assert sum(count.kept for count in found.blocks) == len(found.assignments) == len(wanted)
        for count, accepted in zip(found.blocks, meanings, strict=True):
            assert count.candidates - count.rejected >= len(accepted) >= count.kept


@given(spaces())
@settings(max_examples=1000)
def test_a_grid_is_the_product_settled_each_assignment_where_it_first_appears(space: SearchSpace) -> None:
    agrees_on_a_space(space)


@given(spaces())
@settings(max_examples=300)
def test_arithmetic_counts_what_exists(space: SearchSpace) -> None:
    existing = meaning(Grid(space)).existing

    counted = combinations(space)

    if hides(space):
        assert counted >= existing
    else:
        assert counted == existing


@given(several_blocks())
@settings(max_examples=200)
def test_blocks_follow_each_other_and_share_what_they_both_have(blocks: tuple[Grid | Listing, ...]) -> None:
    agrees_on_several(blocks)
