"""One shim for all tests of a process; skipped by name where a machine cannot have one."""

from collections.abc import Iterator

import pytest

from tests.faults.shim import NoShimError, Shim


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shim]:
    try:
        made = Shim(tmp_path_factory.mktemp("shim"))
    except NoShimError as error:
        pytest.skip(f"skipped: {error}")
    yield made
    made.close()
