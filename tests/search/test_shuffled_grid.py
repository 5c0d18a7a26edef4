"""A shuffled grid: a reproducible part of a grid of any size."""

from sweepledger import search
from sweepledger.search import Expansion
from sweepledger.structs.domain import Choice, IntUniform
from sweepledger.structs.search_block import GridSearch
from sweepledger.structs.space import Condition, Parameter, SearchSpace
from tests.sweeps import a_sweep

SPACE = SearchSpace((Parameter("a", IntUniform(1, 5)), Parameter("b", Choice(("x", "y", "z")))))


def expansion_of(space: SearchSpace, cap: int | None, seed: int | None) -> Expansion:
    made = search.explore(a_sweep(blocks=(GridSearch(space, cap, seed),)))
    assert isinstance(made, Expansion), made
    return made


def rows(expansion: Expansion) -> list[str]:
    return [repr(dict(assignment)) for assignment in expansion.configurations]


def test_shuffling_changes_only_the_order() -> None:
    result, shuffled = rows(expansion_of(SPACE, None, None)), rows(expansion_of(SPACE, None, 1))

    assert shuffled != result
    assert sorted(shuffled) == sorted(result)


def test_a_cap_takes_the_first_and_a_higher_one_keeps_them() -> None:
    assert (
        rows(expansion_of(SPACE, 4, 1))
        == rows(expansion_of(SPACE, None, 1))[:4]
        == rows(expansion_of(SPACE, 9, 1))[:4]
    )


def test_another_seed_is_another_order() -> None:
    assert rows(expansion_of(SPACE, None, 1)) != rows(expansion_of(SPACE, None, 2))


def test_a_cap_above_the_size_takes_the_whole_grid() -> None:
    assert len(expansion_of(SPACE, 99, 1).configurations) == 15


def test_a_cap_on_a_huge_grid_takes_no_longer() -> None:
    space = SearchSpace(tuple(Parameter(name, IntUniform(1, 1000)) for name in "abcd"))

    few = expansion_of(space, 50, 1)

    assert len(set(rows(few))) == 50
    assert few.blocks[0].candidates == 50


def test_candidates_that_differ_only_in_absent_parameters_count_once() -> None:
    child = Parameter("c", IntUniform(1, 9), (Condition("b", ("x",)),))
    space = SearchSpace((Parameter("b", Choice(("x", "y"))), child))

    shuffled = expansion_of(space, None, 1)

    assert len(shuffled.configurations) == 10
    assert shuffled.blocks[0].duplicates == 8
