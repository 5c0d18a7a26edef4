from random import Random

import pytest

from sweepledger.plan.coverage import Discrepancy


def discrepancy(points: list[list[float]]) -> float:
    """Compute the centred discrepancy, squared, by its definition (Hickernell 1998)."""
    size, dimensions = len(points), len(points[0])
    single = pairs = 0.0
    for point in points:
        product = 1.0
        for x in point:
            product *= 1 + abs(x - 0.5) / 2 - (x - 0.5) ** 2 / 2
        single += product
        for other in points:
            product = 1.0
            for x, y in zip(point, other, strict=True):
                product *= 1 + abs(x - 0.5) / 2 + abs(y - 0.5) / 2 - abs(x - y) / 2
            pairs += product
    return float((13 / 12) ** dimensions - 2 * single / size + pairs / size**2)


@pytest.mark.parametrize(("size", "dimensions"), [(4, 1), (8, 2)])
def test_the_reference_is_the_mean_discrepancy_of_random_points(size: int, dimensions: int) -> None:
    random = Random(0)  # noqa: S311 - a simulation
    sets = [[[random.random() for _ in range(dimensions)] for _ in range(size)] for _ in range(1000)]

    mean = sum(map(discrepancy, sets)) / len(sets)

    assert Discrepancy(size, dimensions, 0.0).random == pytest.approx(mean, rel=0.05)


def test_even_points_are_below_the_reference_and_clustered_ones_above() -> None:
    even = [[(at + 0.5) / 16, (at * 5 % 16 + 0.5) / 16] for at in range(16)]
    clustered = [[x / 4, y / 4] for x, y in even]

    for points, is_better in ((even, True), (clustered, False)):
        result = Discrepancy(16, 2, discrepancy(points))

        assert (result.value < result.random) is is_better
