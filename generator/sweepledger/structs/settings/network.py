"""Which networks pods reach, by name, and by which proxy and certificates."""

import re
from collections.abc import Container, Mapping
from typing import Annotated

from msgspec import Meta, Struct

from sweepledger.model import keys, text_forms
from sweepledger.model.keys import MANY, some

API_SERVER_EGRESS = "api-server"
"""The egress to the cluster's API server: for the collector, never for trials."""

GIT_EGRESS = "git"
"""The egress that leads to the git server, if the settings have it."""

PEERS_EGRESS = "peers"
"""Lets pods of one distributed trial reach each other; a reserved name."""

HostPattern = Annotated[
    str, Meta(max_length=text_forms.LONGEST_DOMAIN, examples=["*.example.org", "pypi.org"])
]


class Egress(Struct, frozen=True):
    """A network destination that specs can request; without one a trial reaches nothing."""

    name: Annotated[str, keys.NAME]
    cidrs: Annotated[tuple[str, ...], keys.Absent(()), some(), Meta(examples=[["203.0.113.0/24"]])]
    """Networks."""
    ports: Annotated[tuple[text_forms.Port, ...], some()]
    """TCP ports."""
    hosts: Annotated[tuple[HostPattern, ...], some()] = ()
    """Names of hosts, where * stands for any characters but dots; only Cilium enforces them."""


class ProxySettings(Struct, frozen=True):
    """Proxy through which pods reach hosts outside the cluster by their names."""

    address: Annotated[str, text_forms.PROXY, Meta(max_length=253)]
    """Its address."""
    egress: Annotated[str, keys.EntryOf("egress"), Meta(examples=["proxy"])]
    """Name of the egress that leads to it; pods that have it use the proxy."""
    exceptions: Annotated[
        tuple[Annotated[str, text_forms.HOST_OR_NETWORK], ...],
        *(keys.Key("except"), some(), Meta(examples=[[".example.org", "10.0.0.0/8"]])),
    ] = ()
    """Names, endings of names that begin with a dot, and networks that are reached without it."""

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables by which programs know a proxy: some read only small letters, some only capitals."""
        direct = ",".join(["localhost", "127.0.0.1", ".svc", ".cluster.local", *self.exceptions])
        values = {"HTTP_PROXY": self.address, "HTTPS_PROXY": self.address, "NO_PROXY": direct}
        return {**values, **{name.lower(): value for name, value in values.items()}}


AUTHORITIES_VOLUME = "authorities"
"""The volume with certificates of private authorities, and the folder below `/sweep/` where it is mounted."""


class Authorities(Struct, frozen=True):
    """Certificates of private authorities, for clients of TLS in pods."""

    config_map: str
    key: str


def _authorities(text: str) -> Authorities:
    """Return the ConfigMap and the key that a text names. Raises ValueError."""
    match = re.fullmatch(
        rf"({text_forms.DNS_LABEL.pattern})/([A-Za-z0-9_-][A-Za-z0-9_.-]{{0,252}})", text, re.ASCII
    )
    if match is None:
        raise ValueError("must be a ConfigMap and its key, with a slash between them")
    return Authorities(match[1], match[2])


class DnsSettings(Struct, frozen=True):
    """Where the cluster answers DNS queries. Default: kube-dns or CoreDNS in kube-system, and NodeLocal DNSCache."""

    namespace: Annotated[text_forms.Name | None, Meta(examples=["openshift-dns"])] = None
    """Namespace of the servers' pods."""
    labels: Annotated[
        text_forms.Labels, some(10), Meta(examples=[{"dns.operator.openshift.io/daemonset-dns": "default"}])
    ] = keys.EMPTY
    """Labels of the servers' pods."""
    cidrs: Annotated[tuple[str, ...], some(20), Meta(examples=[["169.254.169.254/32"]])] = ()
    """Networks of servers that are not pods."""
    port: Annotated[text_forms.Port, Meta(examples=[5353])] = 53
    """Port on which the servers listen."""


class NetworkSettings(Struct, frozen=True):
    """What pods reach outside the cluster, and how."""

    egress: Annotated[Mapping[text_forms.Name, Egress], MANY, keys.EntryName("data-store")] = keys.EMPTY
    """Networks outside the cluster that trials may reach, by name. A trial whose spec names none reaches nothing."""
    dns: DnsSettings | None = None
    proxy: ProxySettings | None = None
    authorities: Annotated[
        Authorities | None,
        keys.TextForm(_authorities, "wrong-form", "company-ca/ca.crt"),
    ] = None
    """ConfigMap in the namespaces of trials and collector, and its key with all certificates that clients in pods
    trust, public ones included."""

    def client_variables(self, egress: Container[str]) -> dict[str, str]:
        """Return the variables of a pod with these egress names by which its clients reach hosts and trust them."""
        variables = dict[str, str]()
        if self.proxy is not None and self.proxy.egress in egress:
            variables |= self.proxy.variables
        if self.authorities is not None:
            # By these, OpenSSL, Python's clients, curl, git and AWS's clients know them.
            names = (
                "AWS_CA_BUNDLE",
                "CURL_CA_BUNDLE",
                "GIT_SSL_CAINFO",
                "REQUESTS_CA_BUNDLE",
                "SSL_CERT_FILE",
            )
            variables |= dict.fromkeys(names, f"/sweep/{AUTHORITIES_VOLUME}/{self.authorities.key}")
        return variables
