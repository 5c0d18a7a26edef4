"""Fixtures of the cluster's parts that need no cluster: a git server of one's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.forge import Forge
from tests.cluster.forge_clones import DEV, Clone, serving


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    """A git server with an empty repository and its users."""
    with serving(tmp_path) as served:
        yield served


@pytest.fixture
def clone(forge: Forge, tmp_path: Path) -> Clone:
    """What a developer has, with a first commit that the server has, too."""
    made = Clone.of(forge, tmp_path / "clone", DEV)
    made.git("checkout", "-q", "-b", "main")
    made.commit("sweeps/one.yaml", "one\n")
    assert made.push() == ""
    return made
