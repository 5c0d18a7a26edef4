"""Network policies: nothing can be reached except DNS servers and the destinations that the settings open by name."""

from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import NAMESPACE_LABEL, from_base
from sweepledger.render.platform.team import TEAM
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT, COMPONENT_LABEL, EGRESS_LABEL, SYNC_ACCOUNT
from sweepledger.structs.platform import GitSource, Names
from sweepledger.structs.settings import (
    API_SERVER_EGRESS,
    GIT_EGRESS,
    Egress,
    NetworkSettings,
    ResultsSettings,
)
from sweepledger.structs.settings.network import DnsSettings

DEFAULT_DNS = DnsSettings("kube-system", {"k8s-app": "kube-dns"}, ("169.254.20.10/32",))
API_SERVER_PORTS = (443, 6443)
ANY_HOST = "allow-any-host-by-port"

Opening = tuple[str, str, Mapping[str, str], Egress]
"""The name of a policy, its namespace, labels of the pods, and what it opens to them: without hosts, any host."""


def dns_words(dns: DnsSettings | None) -> dict[str, Any]:
    """Return the cluster's DNS servers in the form of network policies of Kubernetes and of Cilium."""
    dns = dns or DEFAULT_DNS
    servers: list[Manifest] = [{"ipBlock": {"cidr": cidr}} for cidr in dns.cidrs]
    pods: Manifest = {"toCIDR": list(dns.cidrs)}
    if dns.namespace is not None:
        space = {"matchLabels": {NAMESPACE_LABEL: dns.namespace}}
        servers.insert(0, {"namespaceSelector": space, "podSelector": {"matchLabels": dict(dns.labels)}})
        labels = {"k8s:io.kubernetes.pod.namespace": dns.namespace}
        labels |= {f"k8s:{key}": value for key, value in dns.labels.items()}
        pods = {"toEndpoints": [{"matchLabels": labels}]}
    return {
        "name-servers": servers,
        "name-server-port": dns.port,
        "name-server-pods": pods,
        "name-server-port-text": str(dns.port),
    }


def policies(
    names: Names,
    network: NetworkSettings,
    results: ResultsSettings,
    source: GitSource,
    bases: Mapping[str, bytes],
) -> list[Manifest]:
    """Return the policies that open the network: to trials as they request, to the platform's jobs as they need."""
    words = dns_words(network.dns)
    return [
        made
        for policy, namespace, pods, egress in _openings(names, network, results, source)
        for made in from_base(
            bases[f"{TEAM}/egress.yaml"],
            names,
            {
                **words,
                "policy": policy,
                "namespace": namespace,
                "pods": dict(pods),
                "if-addresses": None if egress.hosts and not egress.cidrs else {},
                "addresses": [{"ipBlock": {"cidr": cidr}} for cidr in egress.cidrs] or None,
                "ports": [{"protocol": "TCP", "port": port} for port in egress.ports],
                "if-hosts": {} if egress.hosts else None,
                "hosts": [{"matchPattern" if "*" in host else "matchName": host} for host in egress.hosts],
                "host-ports": [{"port": str(port), "protocol": "TCP"} for port in egress.ports],
            },
        )
    ]


def _openings(
    names: Names, network: NetworkSettings, results: ResultsSettings, source: GitSource
) -> Iterator[Opening]:
    """Yield the opened destinations: for trials by label, never the API server; for the platform's jobs by account.

    Git and the API server have no address that is valid in every cluster: if the settings name none, only their ports
    are known.
    """
    by_label = {name: {f"{EGRESS_LABEL}{name}": "true"} for name in sorted({*network.egress, GIT_EGRESS})}
    for name, pods in by_label.items():
        if name in network.egress and name != API_SERVER_EGRESS:
            yield f"allow-egress-{name}", names.trials, pods, network.egress[name]
    git_ports = _git_ports(network, source)
    # The job that deletes old results reads git. No trial may bear the label: admission has the settings' names only.
    if results.keep_days is not None and git_ports:
        yield ANY_HOST, names.trials, by_label[GIT_EGRESS], Egress(ANY_HOST, (), git_ports)
    shared = {GIT_EGRESS, *((network.proxy.egress,) if network.proxy else ())}
    bucket = {results.bucket.egress} if results.bucket else set[str]()
    stores = {store.egress for store in results.sync.values()}
    jobs = (
        ("", COLLECTOR_ACCOUNT, {API_SERVER_EGRESS, *shared, *bucket}, ports_to_anywhere(network, source)),
        ("sync-", SYNC_ACCOUNT, {*shared, *stores}, git_ports),
    )
    for prefix, account, wanted, ports in jobs if stores else jobs[:1]:
        pods = {COMPONENT_LABEL: account}
        for name in sorted(wanted & network.egress.keys()):
            yield f"{prefix or 'allow-'}egress-{name}", names.collector, pods, network.egress[name]
        if ports:
            yield f"{prefix}{ANY_HOST}", names.collector, pods, Egress(ANY_HOST, (), ports)


def _git_ports(network: NetworkSettings, source: GitSource) -> tuple[int, ...]:
    return () if GIT_EGRESS in network.egress or source.port is None else (source.port,)


def ports_to_anywhere(network: NetworkSettings, source: GitSource) -> tuple[int, ...]:
    """Return the ports on which the collector may reach every host, because the settings name no hosts."""
    servers = () if API_SERVER_EGRESS in network.egress else API_SERVER_PORTS
    return tuple(sorted({*servers, *_git_ports(network, source)}))
