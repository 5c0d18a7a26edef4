"""What may be reached: nothing but names, and what the settings open by name."""

from generator.render.platform.names import COLLECTOR_ACCOUNT, Manifest, Names, manifest
from generator.render.platform.source import Source
from generator.structs.labels import EGRESS_LABEL
from generator.structs.settings import API_SERVER, PEERS, Egress, Settings

POLICY = "networking.k8s.io/v1/NetworkPolicy"


GIT = "git"
"""The egress entry, if the settings have one, that says where the git server is."""

API_SERVER_PORTS = (443, 6443)

ANY_HOST = "allow-any-host-by-port"


def trials_egress(settings: Settings, source: Source) -> list[Manifest]:
    """Open each egress of the settings to the pods that bear its label, but never the API server."""
    opened = [
        _egress(egress, settings) for name, egress in sorted(settings.egress.items()) if name != API_SERVER
    ]
    opened += _expiry(settings, source)
    return [*opened, _peers(settings)] if source.shapes else opened


def collector_egress(settings: Settings, source: Source) -> list[Manifest]:
    """Let the collector, and nothing beside it, reach the git server and the API server.

    Neither has an address that holds for every cluster: where the settings name none, only ports are known.
    """
    known = [settings.egress[name] for name in (API_SERVER, GIT) if name in settings.egress]
    made = [_collectors(f"allow-egress-{one.name}", _blocks(one), one.ports, settings) for one in known]
    anywhere = ports_to_anywhere(settings, source)
    return [*made, _collectors(ANY_HOST, None, anywhere, settings)] if anywhere else made


def ports_to_anywhere(settings: Settings, source: Source) -> tuple[int, ...]:
    """Say on which ports the collector may reach every host, since the settings do not say which."""
    ports = set[int]() if API_SERVER in settings.egress else {*API_SERVER_PORTS}
    if GIT not in settings.egress and source.port is not None:
        ports.add(source.port)
    return tuple(sorted(ports))


def _collectors(
    name: str, places: list[Manifest] | None, ports: tuple[int, ...], settings: Settings
) -> Manifest:
    to = {} if places is None else {"to": places}
    spec = {
        "podSelector": {"matchLabels": {"app.kubernetes.io/component": COLLECTOR_ACCOUNT}},
        "policyTypes": ["Egress"],
        "egress": [{**to, "ports": _ports(ports)}],
    }
    return manifest(POLICY, name, settings, namespace=Names.of(settings).collector, spec=spec)


def _egress(egress: Egress, settings: Settings) -> Manifest:
    spec = {
        "podSelector": {"matchLabels": {f"{EGRESS_LABEL}{egress.name}": "true"}},
        "policyTypes": ["Egress"],
        "egress": [{"to": _blocks(egress), "ports": _ports(egress.ports)}],
    }
    place = Names.of(settings).trials
    return manifest(POLICY, f"allow-egress-{egress.name}", settings, namespace=place, spec=spec)


def _expiry(settings: Settings, source: Source) -> list[Manifest]:
    """Let what deletes old results reach the git server, where no egress of the settings does.

    No trial may bear the label then: admission knows the settings' names only.
    """
    if settings.results.keep_days is None or GIT in settings.egress or source.port is None:
        return []
    spec = {
        "podSelector": {"matchLabels": {f"{EGRESS_LABEL}{GIT}": "true"}},
        "policyTypes": ["Egress"],
        "egress": [{"ports": _ports((source.port,))}],
    }
    return [manifest(POLICY, ANY_HOST, settings, namespace=Names.of(settings).trials, spec=spec)]


def _peers(settings: Settings) -> Manifest:
    """Open the pods of distributed trials to each other, of one trial or not.

    A policy cannot say "the same value of a label", and one a trial would have to be made with each batch.
    """
    peers = {"podSelector": {"matchLabels": {f"{EGRESS_LABEL}{PEERS}": "true"}}}
    spec = {
        **peers,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [peers]}],
        "egress": [{"to": [peers]}],
    }
    place = Names.of(settings).trials
    return manifest(POLICY, "allow-all-distributed-trials", settings, namespace=place, spec=spec)


def _blocks(egress: Egress) -> list[Manifest]:
    return [{"ipBlock": {"cidr": cidr}} for cidr in egress.cidrs]


def _ports(ports: tuple[int, ...]) -> list[Manifest]:
    return [{"protocol": "TCP", "port": port} for port in ports]
