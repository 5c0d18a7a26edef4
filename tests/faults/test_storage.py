"""A file system that fails at a call: the old stands, the exit code is 3, the file is named."""

from pathlib import Path

import pytest

from tests.faults.shim import ERRORS, Shim
from tests.faults.trying import fails, number_of_calls, spread
from tests.faults.worlds import WORLDS

POINTS = {
    "generate": 2,
    "generate-anew": 2,
    "collect-push": 2,
    "collect-here": 2,
    "collect-round": 2,
    "launcher": 6,
}
OFTEN = ("generate", "collect-push", "launcher")
CASES = [(name, error) for name in WORLDS for error in ERRORS if name in OFTEN or error in {"ENOSPC", "EIO"}]


@pytest.mark.parametrize(("name", "error"), CASES, ids=[f"F6 {name} {error}" for name, error in CASES])
def test_a_call_that_fails_leaves_the_old_and_names_the_file(
    shim: Shim, tmp_path: Path, name: str, error: str
) -> None:
    world = WORLDS[name](tmp_path, shim)
    points = spread(number_of_calls(world, error), POINTS[name])

    assert list(fails(world, error, points)) == []
