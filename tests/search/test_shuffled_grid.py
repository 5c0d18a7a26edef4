"""A grid in random order, from which the rounds of a search in a small space take their configurations."""

from sweepledger.search.candidates import shuffled_grid_candidates
from sweepledger.structs.domain import Choice, IntUniform
from sweepledger.structs.space import Parameter, SearchSpace
from tests.search.spaces import product

SPACE = SearchSpace((Parameter("a", IntUniform(1, 5)), Parameter("b", Choice(("x", "y", "z")))))


def rows(space: SearchSpace, seed: int, count: int) -> list[str]:
    return [
        repr(sorted(row.items()))
        for row, _ in zip(shuffled_grid_candidates(space, seed), range(count), strict=False)
    ]


def test_shuffling_changes_only_the_order() -> None:
    shuffled = rows(SPACE, 1, 99)
    written = [repr(sorted(row.items())) for row in product(SPACE)]

    assert shuffled != written
    assert sorted(shuffled) == sorted(written)


def test_another_seed_is_another_order() -> None:
    assert rows(SPACE, 1, 15) != rows(SPACE, 2, 15)


def test_the_first_rows_of_a_huge_grid_take_no_longer() -> None:
    space = SearchSpace(tuple(Parameter(name, IntUniform(1, 1000)) for name in "abcd"))

    assert len(set(rows(space, 1, 50))) == 50
