"""What may be reached: nothing but names, and what the settings open by name."""

from collections.abc import Iterable, Mapping

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import Names, manifest
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT, COMPONENT_LABEL, EGRESS_LABEL, SYNC_ACCOUNT
from sweepledger.structs.settings import (
    API_SERVER_EGRESS,
    GIT_EGRESS,
    PEERS_EGRESS,
    DnsSettings,
    Egress,
    Settings,
)

POLICY = "networking.k8s.io/v1/NetworkPolicy"
HOST_POLICY = "cilium.io/v2/CiliumNetworkPolicy"
KUBE_DNS = DnsSettings("kube-system", {"k8s-app": "kube-dns"})


API_SERVER_PORTS = (443, 6443)

ANY_HOST = "allow-any-host-by-port"


def trials_egress(settings: Settings, source: GitSource) -> list[Manifest]:
    """Open each egress of the settings to the pods that bear its label, but never the API server."""
    place = Names.of(settings).trials
    opened = [
        policy
        for name, egress in sorted(settings.network.egress.items())
        if name != API_SERVER_EGRESS
        for label in [{f"{EGRESS_LABEL}{name}": "true"}]
        for policy in _policies(f"allow-egress-{name}", settings, place, label, egress)
    ]
    opened += _expiry(settings, source)
    return [*opened, _peers(settings)] if source.shapes else opened


def collector_egress(settings: Settings, source: GitSource) -> list[Manifest]:
    """Return the policies that let only the collector reach the git server and the API server.

    Neither has an address that holds for every cluster: where the settings name none, only ports are known.
    """
    bucket = settings.results.bucket
    names = (API_SERVER_EGRESS, GIT_EGRESS, *((bucket.egress,) if bucket else ()), *_proxied(settings))
    known = [name for name in dict.fromkeys(names) if name in settings.network.egress]
    return _of_component(COLLECTOR_ACCOUNT, "allow-", known, ports_to_anywhere(settings, source), settings)


def sync_egress(settings: Settings, source: GitSource) -> list[Manifest]:
    """Return the policies that let the job for stores reach these and the git server, and nothing else."""
    stores = settings.results.sync.values()
    if not stores:
        return []
    names = {GIT_EGRESS, *_proxied(settings), *(store.egress for store in stores)}
    ports = () if GIT_EGRESS in settings.network.egress or source.port is None else (source.port,)
    return _of_component(
        SYNC_ACCOUNT, "sync-", sorted(names & settings.network.egress.keys()), ports, settings
    )


def _proxied(settings: Settings) -> tuple[str, ...]:
    return () if settings.network.proxy is None else (settings.network.proxy.egress,)


def ports_to_anywhere(settings: Settings, source: GitSource) -> tuple[int, ...]:
    """Return the ports on which the collector may reach every host, because the settings do not name hosts."""
    ports = set[int]() if API_SERVER_EGRESS in settings.network.egress else {*API_SERVER_PORTS}
    if GIT_EGRESS not in settings.network.egress and source.port is not None:
        ports.add(source.port)
    return tuple(sorted(ports))


def _of_component(
    component: str, prefix: str, names: Iterable[str], anywhere: tuple[int, ...], settings: Settings
) -> list[Manifest]:
    """Open egress names of the settings to a component of the collector's namespace, and ports of every host."""
    place, label = Names.of(settings).collector, {COMPONENT_LABEL: component}
    made = [
        policy
        for name in names
        for policy in _policies(
            f"{prefix}egress-{name}", settings, place, label, settings.network.egress[name]
        )
    ]
    if anywhere:
        name = f"{prefix.replace('allow-', '')}{ANY_HOST}"
        made.append(_policy(name, settings, place, label, {"ports": _ports(anywhere)}))
    return made


def _policies(
    name: str, settings: Settings, namespace: str, label: Mapping[str, str], egress: Egress
) -> list[Manifest]:
    made = []
    if egress.cidrs:
        opened = {"to": [{"ipBlock": {"cidr": cidr}} for cidr in egress.cidrs], "ports": _ports(egress.ports)}
        made.append(_policy(name, settings, namespace, label, opened))
    if egress.hosts:
        spec = {
            "endpointSelector": {"matchLabels": dict(label)},
            "egress": [_names(settings.network.dns or KUBE_DNS), _hosts(egress)],
        }
        made.append(manifest(HOST_POLICY, name, settings, namespace=namespace, spec=spec))
    return made


def _names(dns: DnsSettings) -> Manifest:
    """Let Cilium read the answers of the servers of DNS: from these it knows the addresses of hosts."""
    servers: Manifest = {}
    if dns.namespace is not None:
        labels = {"k8s:io.kubernetes.pod.namespace": dns.namespace}
        labels |= {f"k8s:{key}": value for key, value in dns.labels.items()}
        servers["toEndpoints"] = [{"matchLabels": labels}]
    else:
        servers["toCIDR"] = list(dns.cidrs)
    ports = [{"port": str(dns.port), "protocol": "ANY"}]
    return {**servers, "toPorts": [{"ports": ports, "rules": {"dns": [{"matchPattern": "*"}]}}]}


def _hosts(egress: Egress) -> Manifest:
    names = [{"matchPattern" if "*" in host else "matchName": host} for host in egress.hosts]
    ports = [{"port": str(port), "protocol": "TCP"} for port in egress.ports]
    return {"toFQDNs": names, "toPorts": [{"ports": ports}]}


def _policy(
    name: str, settings: Settings, namespace: str, label: Mapping[str, str], opened: Manifest
) -> Manifest:
    spec = {"podSelector": {"matchLabels": dict(label)}, "policyTypes": ["Egress"], "egress": [opened]}
    return manifest(POLICY, name, settings, namespace=namespace, spec=spec)


def _expiry(settings: Settings, source: GitSource) -> list[Manifest]:
    """Return the policy that lets the job that deletes old results reach the git server, unless an egress does.

    No trial may bear the label then: admission knows the settings' names only.
    """
    if settings.results.keep_days is None or GIT_EGRESS in settings.network.egress or source.port is None:
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


def _ports(ports: tuple[int, ...]) -> list[Manifest]:
    return [{"protocol": "TCP", "port": port} for port in ports]
