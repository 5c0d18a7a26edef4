"""A repository with a platform, a recorded and an active sweep, and a valid change: the tests of a module share it."""

import pytest

from tests.attacks.changing import Change


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Change:
    return Change.built(tmp_path_factory.mktemp("change"))


@pytest.fixture
def change(built: Change) -> Change:
    built.restore()
    return built
