"""A cluster in the box: control plane, and a node with real containers. Others start what else it has."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster import box
from tests.cluster.apiserver import NoClusterToolsError, Server
from tests.cluster.children import Children
from tests.cluster.control_plane import ControlPlane, Tuning
from tests.cluster.node import Node


@dataclass
class Machine:
    """A running cluster and its parts."""

    folder: Path
    children: Children
    plane: ControlPlane
    node: Node | None = None
    address: str = box.ADDRESS

    @property
    def server(self) -> Server:
        return self.plane.server


@contextmanager
def without_node() -> Iterator[Machine]:
    """Give a control plane without a node, which ends with the block; skip by name where there can be none."""
    try:
        machine = start(has_node=False)
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")
    try:
        yield machine
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")
    finally:
        machine.children.end_all()


def start(*, tuning: Tuning | None = None, has_node: bool = True) -> Machine:
    """Start a cluster; it ends with the box. Raises NoClusterToolsError."""
    if not box.is_inside():
        raise NoClusterToolsError("not in the box: `make e2e` starts it")
    folder = box.folder()
    children = Children(folder / "logs")
    plane = ControlPlane(folder / "plane", children, tuning or Tuning())
    plane.start()
    machine = Machine(folder, children, plane)
    if has_node:
        machine.node = Node(folder / "node", children, plane.server)
        machine.node.start()
    return machine
