"""Hosts outside of the cluster: a network namespace in the box, which the node reaches by a route."""

import socket
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from tests.cluster import box
from tests.cluster.children import Children, until

SPACE = "outside"
NODE_END, OUTER_END = "192.0.2.1", "192.0.2.2"
LISTENER = Path(__file__).with_name("listener.py")
READY_SECONDS = 120


def start(children: Children, *places: str) -> None:
    """Make the namespace, let hosts listen in it at places as the listener has them, and lead packets there."""
    addresses = sorted({place.split(":")[1] for place in places})
    inside = ("ip", "-n", SPACE)
    box.do("ip", "netns", "add", SPACE)
    box.do("ip", "link", "add", SPACE, "type", "veth", "peer", "name", "eth0", "netns", SPACE)
    box.do("ip", "address", "add", f"{NODE_END}/30", "dev", SPACE)
    box.do("ip", "link", "set", SPACE, "up")
    box.do(*inside, "address", "add", f"{OUTER_END}/30", "dev", "eth0")
    for link in ("lo", "eth0"):
        box.do(*inside, "link", "set", link, "up")
    box.do(*inside, "route", "add", "default", "via", NODE_END)
    for address in addresses:
        box.do(*inside, "address", "add", f"{address}/32", "dev", "lo")
        box.do("ip", "route", "add", f"{address}/32", "via", OUTER_END)
    children.start(SPACE, ["ip", "netns", "exec", SPACE, sys.executable, str(LISTENER), *places])
    until("the hosts outside listen", lambda: _all_listen(places), seconds=READY_SECONDS, pause=0.2)


def stop(children: Children) -> None:
    """End the hosts, and remove the routes to them."""
    children.end(SPACE)
    with suppress(box.NoBoxError):  # the routes and the other end go with the link
        box.do("ip", "link", "delete", SPACE)
    box.do("ip", "netns", "delete", SPACE)


def _all_listen(places: Collection[str]) -> bool:
    for place in places:
        _, address, port = place.split(":")
        try:
            socket.create_connection((address, int(port)), timeout=READY_SECONDS).close()
        except OSError:
            return False
    return True
