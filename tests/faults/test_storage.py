"""A file system that fails at a call: the old stands, the exit code is 3, the file is named."""

from collections.abc import Callable

import pytest

from tests.faults.shim import ERRORS
from tests.faults.trying import fails, inside, number_of_calls, spread
from tests.faults.worlds import WORLDS, World
from tests.tiers import parameters

LAUNCHER_POINTS, POINTS = 4, 2
OFTEN = ("generate", "collect-push", "launcher")
CASES = [(name, "ENOSPC") for name in WORLDS]
BY_DEFAULT = [(name, "ENOSPC") for name in OFTEN]
MORE = [(name, error) for name in WORLDS for error in ERRORS if name in OFTEN or error in {"ENOSPC", "EIO"}]


def ids(cases: list[tuple[str, str]]) -> list[str]:
    return [f"F6 {name} {error}" for name, error in cases]


@pytest.mark.parametrize(
    ("name", "error"), parameters(CASES, BY_DEFAULT, "more points of failure"), ids=ids(CASES)
)
def test_a_call_that_fails_leaves_the_old(world_of: Callable[[str], World], name: str, error: str) -> None:
    world = world_of(name)
    points = inside(number_of_calls(world, error), LAUNCHER_POINTS if name == "launcher" else 1)

    assert list(fails(world, error, points)) == []


@pytest.mark.full_suite("more points of failure")
@pytest.mark.parametrize(("name", "error"), MORE, ids=ids(MORE))
def test_more_failed_calls_leave_the_old(world_of: Callable[[str], World], name: str, error: str) -> None:
    world = world_of(name)
    points = spread(number_of_calls(world, error), LAUNCHER_POINTS if name == "launcher" else POINTS)

    assert list(fails(world, error, points)) == []
