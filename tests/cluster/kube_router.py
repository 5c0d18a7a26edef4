"""kube-router's firewall: it enforces the NetworkPolicies of a node's pods by iptables and ipset.

Beware: it learns of a pod from the API server, after the pod has an address. Until then it lets all its packets pass.
"""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.cluster import box, building
from tests.cluster.apiserver import tool
from tests.cluster.children import until
from tests.cluster.machine import Machine

NAME = "kube-router"
TOOLS = ("iptables", "ipset")
BRIDGED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
"""Whether packets between the pods of one bridge pass iptables; a kernel without br_netfilter has no such file."""
READY_SECONDS = 180
PROBE = "sweepledger-probe"
NEEDED = (
    ("-m", "set", "--match-set", PROBE, "dst", "-j", "MARK", "--set-xmark", "0x10000/0x10000"),
    ("-m", "physdev", "--physdev-is-bridged", "-j", "RETURN"),
    ("-m", "addrtype", "--src-type", "LOCAL", "-j", "ACCEPT"),
    ("-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT"),
    ("-m", "limit", "--limit", "10/minute", "-j", "NFLOG", "--nflog-group", "100"),
    ("-m", "mark", "!", "--mark", "0x10000/0x10000", "-j", "REJECT"),
)
"""One rule for each thing that its rules consist of."""


def why_not() -> str:
    """Say why it cannot run in this box; empty where it can."""
    if building.built(building.KUBE_ROUTER) is None:
        return f"{NAME} not built: run `python -m tests.cluster.building {NAME}`"
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed: run `make cluster-tools`"
    if not BRIDGED.is_file():
        return "this kernel lacks br_netfilter: packets between pods of one bridge pass no firewall"
    try:
        _try_rules()
    except box.NoBoxError as error:
        return f"this kernel lacks a part of the firewall: {error}"
    finally:
        for argv in (("iptables", "-F", PROBE), ("iptables", "-X", PROBE), ("ipset", "destroy", PROBE)):
            _succeeds(*argv)
    return ""


def _try_rules() -> None:
    box.do("ipset", "create", PROBE, "hash:net", "timeout", "0")
    box.do("iptables", "-N", PROBE)
    for rule in NEEDED:
        box.do("iptables", "-A", PROBE, *rule)


def start(machine: Machine) -> None:
    """Let the policies hold on the node, and wait until its rules are there. Raises NoClusterToolsError."""
    assert machine.node is not None
    BRIDGED.write_text("1")
    # No range of Services is named: the API server answers on the Service's address itself, so to the firewall
    # this is a host as any other, and not an address that a proxy translates.
    flags = [
        f"--kubeconfig={machine.server.kubeconfig}",
        f"--hostname-override={machine.node.place.name}",
        *("--run-firewall=true", "--run-router=false", "--run-service-proxy=false", "--enable-cni=false"),
        *("--health-port=0", "--v=1"),
    ]
    machine.children.start(NAME, [str(tool(building.KUBE_ROUTER, NAME)), *flags])

    def is_ready() -> bool:
        assert machine.children.is_alive(NAME), f"{NAME} ended:\n{machine.children.tail(NAME)}"
        return "-A FORWARD" in _rules() and "KUBE-ROUTER-FORWARD" in _rules()

    until("the firewall has rules", is_ready, seconds=READY_SECONDS, pause=0.3)


def until_it_knows(addresses: Iterable[str]) -> None:
    """Wait until it filters the packets of pods, by their addresses."""

    def knows_all() -> bool:
        rules = _rules()
        return all(f"-A KUBE-ROUTER-FORWARD -s {address}/32 " in rules for address in addresses)

    until("the firewall knows the pods", knows_all, seconds=READY_SECONDS, pause=0.5)


def stop(machine: Machine) -> None:
    """End it and remove its rules, which would hold on without it."""
    machine.children.end(NAME)
    box.do("iptables", "-F")
    box.do("iptables", "-X")
    # The kernel gives a set free some time after the last rule that names it.
    until("no set is left", lambda: _succeeds("ipset", "destroy"), seconds=READY_SECONDS, pause=0.5)


def _succeeds(*argv: str) -> bool:
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def _rules() -> str:
    return subprocess.run(
        ["iptables-save", "-t", "filter"], capture_output=True, text=True, check=True
    ).stdout
