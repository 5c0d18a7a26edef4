"""What tests of the engine ask for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sweepledger.engine.local.node import Node
from tests.engine.batches import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    assert made.processes() == []


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    made.close()
