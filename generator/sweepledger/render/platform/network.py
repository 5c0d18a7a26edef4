"""What may be reached: nothing but names, and what the settings open by name."""

from collections.abc import Mapping

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import SYNC_ACCOUNT, Names, manifest
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT, EGRESS_LABEL
from sweepledger.structs.settings import API_SERVER_EGRESS, GIT_EGRESS, PEERS_EGRESS, Egress, Settings

POLICY = "networking.k8s.io/v1/NetworkPolicy"


API_SERVER_PORTS = (443, 6443)

ANY_HOST = "allow-any-host-by-port"


def trials_egress(settings: Settings, source: GitSource) -> list[Manifest]:
    """Open each egress of the settings to the pods that bear its label, but never the API server."""
    opened = [
        _egress(egress, settings)
        for name, egress in sorted(settings.egress.items())
        if name != API_SERVER_EGRESS
    ]
    opened += _expiry(settings, source)
    return [*opened, _peers(settings)] if source.shapes else opened


def collector_egress(settings: Settings, source: GitSource) -> list[Manifest]:
    """Return the policies that let only the collector reach the git server and the API server.

    Neither has an address that holds for every cluster: where the settings name none, only ports are known.
    """
    bucket = settings.results.bucket
    names = (API_SERVER_EGRESS, GIT_EGRESS, *((bucket.egress,) if bucket else ()))
    known = [settings.egress[name] for name in dict.fromkeys(names) if name in settings.egress]
    made = [
        _of_component(COLLECTOR_ACCOUNT, f"allow-egress-{one.name}", _blocks(one), one.ports, settings)
        for one in known
    ]
    anywhere = ports_to_anywhere(settings, source)
    if not anywhere:
        return made
    return [*made, _of_component(COLLECTOR_ACCOUNT, ANY_HOST, None, anywhere, settings)]


def sync_egress(settings: Settings, source: GitSource) -> list[Manifest]:
    """Return the policies that let the job for stores reach these and the git server, and nothing else."""
    stores = settings.results.sync.values()
    if not stores:
        return []
    known = sorted({GIT_EGRESS, *(store.egress for store in stores)} & settings.egress.keys())
    opened = [settings.egress[name] for name in known]
    made = [
        _of_component(SYNC_ACCOUNT, f"sync-egress-{egress.name}", _blocks(egress), egress.ports, settings)
        for egress in opened
    ]
    if GIT_EGRESS in settings.egress or source.port is None:
        return made
    return [*made, _of_component(SYNC_ACCOUNT, f"sync-{ANY_HOST}", None, (source.port,), settings)]


def ports_to_anywhere(settings: Settings, source: GitSource) -> tuple[int, ...]:
    """Return the ports on which the collector may reach every host, because the settings do not name hosts."""
    ports = set[int]() if API_SERVER_EGRESS in settings.egress else {*API_SERVER_PORTS}
    if GIT_EGRESS not in settings.egress and source.port is not None:
        ports.add(source.port)
    return tuple(sorted(ports))


def _of_component(
    component: str, name: str, places: list[Manifest] | None, ports: tuple[int, ...], settings: Settings
) -> Manifest:
    to = {} if places is None else {"to": places}
    label = {"app.kubernetes.io/component": component}
    return _policy(name, settings, Names.of(settings).collector, label, {**to, "ports": _ports(ports)})


def _egress(egress: Egress, settings: Settings) -> Manifest:
    label = {f"{EGRESS_LABEL}{egress.name}": "true"}
    opened = {"to": _blocks(egress), "ports": _ports(egress.ports)}
    return _policy(f"allow-egress-{egress.name}", settings, Names.of(settings).trials, label, opened)


def _policy(
    name: str, settings: Settings, namespace: str, label: Mapping[str, str], opened: Manifest
) -> Manifest:
    """Let pods with a label reach what is opened."""
    spec = {
        "podSelector": {"matchLabels": dict(label)},
        "policyTypes": ["Egress"],
        "egress": [opened],
    }
    return manifest(POLICY, name, settings, namespace=namespace, spec=spec)


def _expiry(settings: Settings, source: GitSource) -> list[Manifest]:
    """Return the policy that lets the job that deletes old results reach the git server, unless an egress does.

    No trial may bear the label then: admission knows the settings' names only.
    """
    if settings.results.keep_days is None or GIT_EGRESS in settings.egress or source.port is None:
        return []
    label = {f"{EGRESS_LABEL}{GIT_EGRESS}": "true"}
    return [_policy(ANY_HOST, settings, Names.of(settings).trials, label, {"ports": _ports((source.port,))})]


def _peers(settings: Settings) -> Manifest:
    """Open the pods of distributed trials to each other, of one trial or not.

    A policy cannot say "the same value of a label", and one a trial would have to be made with each batch.
    """
    peers = {"podSelector": {"matchLabels": {f"{EGRESS_LABEL}{PEERS_EGRESS}": "true"}}}
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
