"""Destinations by the names of hosts, which Cilium enforces: the policies of trials, the collector and its helpers."""

from typing import Any

from msgspec.structs import replace

from sweepledger.structs.settings import Controller, Egress, Settings
from sweepledger.structs.settings.network import DnsSettings
from tests.render.platforms import PLATFORM_SETTINGS, a_platform, manifests, network_policies, the
from tests.sweeps import with_keys

PACKAGES = Egress("packages", (), (443,), ("pypi.org", "*.pythonhosted.org"))
GIT = Egress("git", ("198.51.100.7/32",), (443,), ("git.example.org",))
BY_NAME = with_keys(
    PLATFORM_SETTINGS, egress={"packages": PACKAGES, "git": GIT}, controller=Controller.ARGOCD
)
DNS_PORT = {"ports": [{"port": "53", "protocol": "ANY"}], "rules": {"dns": [{"matchPattern": "*"}]}}


def host_policies(settings: Settings = BY_NAME, namespace: str | None = None) -> dict[str, dict[str, Any]]:
    return {
        one["metadata"]["name"]: one["spec"]
        for one in manifests(a_platform(settings))
        if one["kind"] == "CiliumNetworkPolicy" and namespace in {None, one["metadata"]["namespace"]}
    }


def test_trials_with_the_label_reach_the_hosts_and_the_server_of_dns_tells_cilium_their_addresses() -> None:
    spec = host_policies()["allow-egress-packages"]

    servers = {"k8s:io.kubernetes.pod.namespace": "kube-system", "k8s:k8s-app": "kube-dns"}
    assert spec == {
        "endpointSelector": {"matchLabels": {"sweepledger.dev/egress-packages": "true"}},
        "egress": [
            {"toEndpoints": [{"matchLabels": servers}], "toPorts": [DNS_PORT]},
            {
                "toFQDNs": [{"matchName": "pypi.org"}, {"matchPattern": "*.pythonhosted.org"}],
                "toPorts": [{"ports": [{"port": "443", "protocol": "TCP"}]}],
            },
        ],
    }


def test_a_network_policy_opens_only_addresses() -> None:
    names = network_policies(a_platform(BY_NAME), BY_NAME.trials.namespace)

    assert "allow-egress-git" in names
    assert "allow-egress-packages" not in names


def test_the_collector_reaches_a_git_server_by_its_name() -> None:
    named = with_keys(
        BY_NAME,
        egress={**BY_NAME.network.egress, "api-server": Egress("api-server", ("192.0.2.1/32",), (6443,))},
    )
    place = f"{BY_NAME.trials.namespace}-collector"

    spec = host_policies(named, place)["allow-egress-git"]

    assert spec["endpointSelector"]["matchLabels"] == {"app.kubernetes.io/component": "sweep-collector"}
    assert {"matchName": "git.example.org"} in spec["egress"][1]["toFQDNs"]
    assert "allow-any-host-by-port" not in network_policies(a_platform(named), place)


def test_other_servers_of_dns_are_those_of_the_settings() -> None:
    openshift = DnsSettings("openshift-dns", {"dns.operator.openshift.io/daemonset-dns": "default"}, (), 5353)
    outside = DnsSettings(cidrs=("169.254.169.254/32",))

    pods, machines = (
        host_policies(with_keys(BY_NAME, dns=dns))["allow-egress-packages"]["egress"][0]
        for dns in (openshift, outside)
    )

    (labels,) = pods["toEndpoints"]
    assert labels["matchLabels"] == {
        "k8s:io.kubernetes.pod.namespace": "openshift-dns",
        "k8s:dns.operator.openshift.io/daemonset-dns": "default",
    }
    assert pods["toPorts"][0]["ports"] == [{"port": "5353", "protocol": "ANY"}]
    assert machines["toCIDR"] == ["169.254.169.254/32"]


def test_argo_cd_may_apply_the_kind_only_if_an_egress_has_hosts() -> None:
    kind = {"group": "cilium.io", "kind": "CiliumNetworkPolicy"}
    plain = with_keys(BY_NAME, egress={"git": replace(GIT, hosts=())})

    allowed = [
        the("AppProject", f"{BY_NAME.trials.namespace}-platform", a_platform(settings))["spec"][
            "namespaceResourceWhitelist"
        ]
        for settings in (BY_NAME, plain)
    ]

    assert [kind in kinds for kinds in allowed] == [True, False]
