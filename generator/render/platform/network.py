"""What may be reached: nothing but names, and what the settings open by name."""

from generator.render.platform.names import COLLECTOR_ACCOUNT, Manifest, Names, manifest
from generator.render.platform.source import Source
from generator.structs.settings import Egress, Settings

POLICY = "networking.k8s.io/v1/NetworkPolicy"

EGRESS_LABEL = "sweepledger.dev/egress-"
"""With the name of an egress after it: on the pods of a sweep that asks for it."""

PEERS = "peers"
"""Pods of distributed trials reach each other; no settings name it, so no plain trial may ask for it."""

GIT = "git"
"""The egress entry, if the settings have one, that says where the git server is."""

API_SERVER_PORTS = (443, 6443)


def trials_egress(settings: Settings, source: Source) -> list[Manifest]:
    """Open each egress of the settings to the pods that bear its label."""
    opened = [_egress(egress, settings) for _, egress in sorted(settings.egress.items())]
    return [*opened, _peers(settings)] if source.shapes else opened


def collector_egress(settings: Settings, source: Source) -> list[Manifest]:
    """Let the collector, and nothing beside it, reach the git server and the API server.

    Neither has an address that holds for every cluster; the settings' egress `git` narrows the first.
    """
    place = Names.of(settings).collector
    rules = [{"ports": _ports(API_SERVER_PORTS)}]
    known = settings.egress.get(GIT)
    if known is not None:
        rules.append({"to": _blocks(known), "ports": _ports(known.ports)})
    elif source.port is not None and source.port not in API_SERVER_PORTS:
        rules.append({"ports": _ports((source.port,))})
    selector = {"matchLabels": {"app.kubernetes.io/component": COLLECTOR_ACCOUNT}}
    spec = {"podSelector": selector, "policyTypes": ["Egress"], "egress": rules}
    return [manifest(POLICY, "allow-git-and-api-server", settings, namespace=place, spec=spec)]


def _egress(egress: Egress, settings: Settings) -> Manifest:
    spec = {
        "podSelector": {"matchLabels": {f"{EGRESS_LABEL}{egress.name}": "true"}},
        "policyTypes": ["Egress"],
        "egress": [{"to": _blocks(egress), "ports": _ports(egress.ports)}],
    }
    place = Names.of(settings).trials
    return manifest(POLICY, f"allow-egress-{egress.name}", settings, namespace=place, spec=spec)


def _peers(settings: Settings) -> Manifest:
    peers = {"podSelector": {"matchLabels": {f"{EGRESS_LABEL}{PEERS}": "true"}}}
    spec = {
        **peers,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [peers]}],
        "egress": [{"to": [peers]}],
    }
    place = Names.of(settings).trials
    return manifest(POLICY, "allow-peers-of-a-trial", settings, namespace=place, spec=spec)


def _blocks(egress: Egress) -> list[Manifest]:
    return [{"ipBlock": {"cidr": cidr}} for cidr in egress.cidrs]


def _ports(ports: tuple[int, ...]) -> list[Manifest]:
    return [{"protocol": "TCP", "port": port} for port in ports]
