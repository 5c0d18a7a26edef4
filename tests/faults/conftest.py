"""One shim, and one world per command, for all tests of a process; skipped by name where a machine cannot have them."""

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tests.faults.shim import NoShimError, Shim
from tests.faults.worlds import WORLDS, World


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shim]:
    try:
        made = Shim(tmp_path_factory.mktemp("shim"))
    except NoShimError as error:
        pytest.skip(f"skipped: {error}")
    yield made
    made.close()


@pytest.fixture(scope="session")
def world_of(shim: Shim, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], World]:
    """Return the world of a command, which knows the result of an undisturbed run once one test has asked for it."""

    @cache
    def world(name: str) -> World:
        return WORLDS[name](tmp_path_factory.mktemp(name), shim)

    return world
