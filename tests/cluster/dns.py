"""The DNS of a cluster in the box: CoreDNS, at the address that pods ask. It knows Services, and nothing outside."""

from tests.cluster import box, building, controller_files
from tests.cluster.apiserver import tool
from tests.cluster.machine import Machine
from tests.manifests import AUTHORIZATION, bound_to_account, manifest

NAMESPACE, ACCOUNT = "kube-system", "coredns"
READY = "127.0.0.1:9581"
COREFILE = """.:53 {{
    bind {address}
    ready {ready}
    errors
    kubernetes cluster.local {{
        kubeconfig {kubeconfig}
        ttl 1
    }}
}}
"""
RIGHTS = {"": ["endpoints", "services", "pods", "namespaces"], "discovery.k8s.io": ["endpointslices"]}


def start(machine: Machine) -> None:
    """Start it with the rights that it has in a cluster, and wait until it knows the Services."""
    program = tool(building.COREDNS, "coredns")
    rules = [
        {"apiGroups": [group], "resources": kinds, "verbs": ["list", "watch"]}
        for group, kinds in RIGHTS.items()
    ]
    machine.server.apply(
        manifest("ServiceAccount", ACCOUNT, NAMESPACE),
        manifest("ClusterRole", ACCOUNT, api=f"{AUTHORIZATION}/v1", rules=rules),
        bound_to_account(ACCOUNT, NAMESPACE, ACCOUNT),
    )
    file = machine.folder / "Corefile"
    kubeconfig = controller_files.kubeconfig(machine, NAMESPACE, ACCOUNT)
    file.write_text(COREFILE.format(address=box.SERVICE, ready=READY, kubeconfig=kubeconfig))
    machine.children.start("coredns", [str(program), "-conf", str(file)])
    controller_files.until_ready(machine, "coredns", f"http://{READY}/ready")
