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
    NetworkSettings,
    ResultsSettings,
)

POLICY = "networking.k8s.io/v1/NetworkPolicy"
HOST_POLICY = "cilium.io/v2/CiliumNetworkPolicy"
KUBE_DNS = DnsSettings("kube-system", {"k8s-app": "kube-dns"})


API_SERVER_PORTS = (443, 6443)

ANY_HOST = "allow-any-host-by-port"


def trials_egress(
    names: Names, network: NetworkSettings, results: ResultsSettings, source: GitSource
) -> list[Manifest]:
    """Open each egress of the settings to the pods that bear its label, but never the API server."""
    place = names.trials
    opened = [
        policy
        for name, egress in sorted(network.egress.items())
        if name != API_SERVER_EGRESS
        for label in [{f"{EGRESS_LABEL}{name}": "true"}]
        for policy in _policies(f"allow-egress-{name}", names, place, label, network, egress)
    ]
    opened += _expiry(names, network, results, source)
    return [*opened, _peers(names)] if source.shapes else opened


def collector_egress(
    names: Names, network: NetworkSettings, results: ResultsSettings, source: GitSource
) -> list[Manifest]:
    """Return the policies that let only the collector reach the git server and the API server.

    Neither has an address that holds for every cluster: where the settings name none, only ports are known.
    """
    bucket = results.bucket
    wanted = (API_SERVER_EGRESS, GIT_EGRESS, *((bucket.egress,) if bucket else ()), *_proxied(network))
    listed = [name for name in dict.fromkeys(wanted) if name in network.egress]
    ports = ports_to_anywhere(network, source)
    return _of_component(COLLECTOR_ACCOUNT, "allow-", listed, ports, names, network)


def sync_egress(
    names: Names, network: NetworkSettings, results: ResultsSettings, source: GitSource
) -> list[Manifest]:
    """Return the policies that let the job for stores reach these and the git server, and nothing else."""
    stores = results.sync.values()
    if not stores:
        return []
    wanted = {GIT_EGRESS, *_proxied(network), *(store.egress for store in stores)}
    ports = () if GIT_EGRESS in network.egress or source.port is None else (source.port,)
    return _of_component(SYNC_ACCOUNT, "sync-", sorted(wanted & network.egress.keys()), ports, names, network)


def _proxied(network: NetworkSettings) -> tuple[str, ...]:
    return () if network.proxy is None else (network.proxy.egress,)


def ports_to_anywhere(network: NetworkSettings, source: GitSource) -> tuple[int, ...]:
    """Return the ports on which the collector may reach every host, because the settings do not name hosts."""
    ports = set[int]() if API_SERVER_EGRESS in network.egress else {*API_SERVER_PORTS}
    if GIT_EGRESS not in network.egress and source.port is not None:
        ports.add(source.port)
    return tuple(sorted(ports))


def _of_component(
    component: str,
    prefix: str,
    listed: Iterable[str],
    anywhere: tuple[int, ...],
    names: Names,
    network: NetworkSettings,
) -> list[Manifest]:
    """Open egress names of the settings to a component of the collector's namespace, and ports of every host."""
    place, label = names.collector, {COMPONENT_LABEL: component}
    made = [
        policy
        for name in listed
        for policy in _policies(f"{prefix}egress-{name}", names, place, label, network, network.egress[name])
    ]
    if anywhere:
        name = f"{prefix.replace('allow-', '')}{ANY_HOST}"
        made.append(_policy(name, names, place, label, {"ports": _ports(anywhere)}))
    return made


def _policies(
    name: str,
    names: Names,
    namespace: str,
    label: Mapping[str, str],
    network: NetworkSettings,
    egress: Egress,
) -> list[Manifest]:
    made = []
    if egress.cidrs:
        opened = {"to": [{"ipBlock": {"cidr": cidr}} for cidr in egress.cidrs], "ports": _ports(egress.ports)}
        made.append(_policy(name, names, namespace, label, opened))
    if egress.hosts:
        spec = {
            "endpointSelector": {"matchLabels": dict(label)},
            "egress": [_names(network.dns or KUBE_DNS), _hosts(egress)],
        }
        made.append(manifest(HOST_POLICY, name, names, namespace=namespace, spec=spec))
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


def _policy(name: str, names: Names, namespace: str, label: Mapping[str, str], opened: Manifest) -> Manifest:
    spec = {"podSelector": {"matchLabels": dict(label)}, "policyTypes": ["Egress"], "egress": [opened]}
    return manifest(POLICY, name, names, namespace=namespace, spec=spec)


def _expiry(
    names: Names, network: NetworkSettings, results: ResultsSettings, source: GitSource
) -> list[Manifest]:
    """Return the policy that lets the job that deletes old results reach the git server, unless an egress does.

    No trial may bear the label then: admission knows the settings' names only.
    """
    if results.keep_days is None or GIT_EGRESS in network.egress or source.port is None:
        return []
    label = {f"{EGRESS_LABEL}{GIT_EGRESS}": "true"}
    return [_policy(ANY_HOST, names, names.trials, label, {"ports": _ports((source.port,))})]


def _peers(names: Names) -> Manifest:
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
    place = names.trials
    return manifest(POLICY, "allow-all-distributed-trials", names, namespace=place, spec=spec)


def _ports(ports: tuple[int, ...]) -> list[Manifest]:
    return [{"protocol": "TCP", "port": port} for port in ports]
