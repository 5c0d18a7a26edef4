"""A second cluster in the box, on a machine of its own: a network namespace on the box's bridge.

Only names of processes and folders differ from the first cluster; all ports are the same.
"""

from pathlib import Path

from tests.cluster import box
from tests.cluster.children import Children
from tests.cluster.control_plane import ControlPlane
from tests.cluster.machine import Machine
from tests.cluster.node import Node, Place

SPACE = "second"
PLACE = Place(9, has_machine=True)
NETWORK = Path("/run", SPACE)
"""Not below /run/netns: `ip netns add` would mount that folder over the networks of pods, which then cannot end."""
ENTER = ("nsenter", f"--net={NETWORK}")


def start() -> Machine:
    """Start it; it ends with the box. Raises NoClusterToolsError."""
    _make_machine()
    folder = box.folder() / SPACE
    children = Children(folder / "logs", ENTER)
    plane = ControlPlane(folder / "plane", children, address=PLACE.address, endpoint=PLACE.address)
    plane.start()
    node = Node(folder / "node", children, plane.server, PLACE)
    node.start()
    return Machine(folder, children, plane, node, PLACE.address)


def lose(cluster: Machine) -> None:
    """End at once and without a word all that runs there, as when the power of its region is cut."""
    assert cluster.node is not None
    cluster.node.lose()
    cluster.children.kill_all()


def resume(cluster: Machine) -> None:
    """Start the cluster again with what was written before it was lost."""
    assert cluster.node is not None
    cluster.plane.resume()
    cluster.node.start_containerd()
    cluster.node.start_kubelet()


def _make_machine() -> None:
    """Make the namespace, and lead packets to it and to its pods."""
    inside = (*ENTER, "ip")
    NETWORK.touch()
    box.do("unshare", f"--net={NETWORK}", "true")
    box.do("ip", "link", "add", SPACE, "type", "veth", "peer", "name", "eth0", "netns", str(NETWORK))
    box.do("ip", "link", "set", SPACE, "master", box.BRIDGE, "up")
    box.do("ip", "route", "add", PLACE.pods, "via", PLACE.address)
    for link in ("lo", "eth0"):
        box.do(*inside, "link", "set", link, "up")
    for address in (f"{PLACE.address}/24", f"{box.SERVICE}/32"):
        box.do(*inside, "address", "add", address, "dev", "eth0")
    box.do(*inside, "route", "add", "default", "dev", "eth0")
    box.do(*ENTER, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
