"""What may be reached: nothing but names, and what the settings open by name."""

from collections.abc import Iterable, Mapping
from typing import Any

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import NAMESPACE_LABEL, from_base
from sweepledger.render.platform.team import TEAM
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT, COMPONENT_LABEL, EGRESS_LABEL, SYNC_ACCOUNT
from sweepledger.structs.platform.git_source import GitSource
from sweepledger.structs.platform.names import Names
from sweepledger.structs.settings import (
    API_SERVER_EGRESS,
    GIT_EGRESS,
    DnsSettings,
    Egress,
    NetworkSettings,
    ResultsSettings,
)

DEFAULT_DNS = DnsSettings("kube-system", {"k8s-app": "kube-dns"}, ("169.254.20.10/32",))
API_SERVER_PORTS = (443, 6443)
ANY_HOST = "allow-any-host-by-port"

Opening = tuple[str, str, Mapping[str, str], Egress]
"""The name of a policy, its namespace, labels of the pods, and what it opens to them: without hosts, any host."""


def dns_words(dns: DnsSettings | None) -> dict[str, Any]:
    """Return where the cluster answers DNS queries, as network policies of Kubernetes and of Cilium say it."""
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
    """Return the policies that open the network: to trials what they name, to the platform's jobs what they need."""
    openings = (
        *_to_trials(names, network, results, source),
        *_to_collector(names, network, results, source),
        *_to_sync(names, network, results, source),
    )
    words = dns_words(network.dns)
    return [
        made
        for policy, namespace, pods, egress in openings
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


def _to_trials(
    names: Names, network: NetworkSettings, results: ResultsSettings, source: GitSource
) -> Iterable[Opening]:
    """Open each egress of the settings to the pods that bear its label, but never the API server."""
    for name, egress in sorted(network.egress.items()):
        if name != API_SERVER_EGRESS:
            yield f"allow-egress-{name}", names.trials, {f"{EGRESS_LABEL}{name}": "true"}, egress
    # The job that deletes old results reads git. No trial may bear the label: admission has the settings' names only.
    if results.keep_days is not None and GIT_EGRESS not in network.egress and source.port is not None:
        yield ANY_HOST, names.trials, {f"{EGRESS_LABEL}{GIT_EGRESS}": "true"}, _any_host(source.port)


def _to_collector(
    names: Names, network: NetworkSettings, results: ResultsSettings, source: GitSource
) -> Iterable[Opening]:
    """Let only the collector reach the git server and the API server.

    Neither has an address that holds for every cluster: where the settings name none, only ports are known.
    """
    bucket, pods = results.bucket, {COMPONENT_LABEL: COLLECTOR_ACCOUNT}
    wanted = (API_SERVER_EGRESS, GIT_EGRESS, *((bucket.egress,) if bucket else ()), *_proxied(network))
    for name in dict.fromkeys(wanted):
        if name in network.egress:
            yield f"allow-egress-{name}", names.collector, pods, network.egress[name]
    if ports := ports_to_anywhere(network, source):
        yield ANY_HOST, names.collector, pods, _any_host(*ports)


def _to_sync(
    names: Names, network: NetworkSettings, results: ResultsSettings, source: GitSource
) -> Iterable[Opening]:
    """Let the job for stores reach these and the git server, and nothing else."""
    pods, stores = {COMPONENT_LABEL: SYNC_ACCOUNT}, results.sync.values()
    if not stores:
        return
    for name in sorted({GIT_EGRESS, *_proxied(network), *(store.egress for store in stores)}):
        if name in network.egress:
            yield f"sync-egress-{name}", names.collector, pods, network.egress[name]
    if GIT_EGRESS not in network.egress and source.port is not None:
        yield f"sync-{ANY_HOST}", names.collector, pods, _any_host(source.port)


def _proxied(network: NetworkSettings) -> tuple[str, ...]:
    return () if network.proxy is None else (network.proxy.egress,)


def _any_host(*ports: int) -> Egress:
    return Egress(ANY_HOST, (), ports)


def ports_to_anywhere(network: NetworkSettings, source: GitSource) -> tuple[int, ...]:
    """Return the ports on which the collector may reach every host, because the settings do not name hosts."""
    ports = set[int]() if API_SERVER_EGRESS in network.egress else {*API_SERVER_PORTS}
    if GIT_EGRESS not in network.egress and source.port is not None:
        ports.add(source.port)
    return tuple(sorted(ports))
