"""The DNS of a cluster in the box: CoreDNS, at the address that pods ask. It knows Services, and nothing outside."""

from tests.cluster import box, building, controller_files
from tests.cluster.apiserver import tool
from tests.cluster.machine import Machine

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
    meta = {"name": ACCOUNT}
    rules = [
        {"apiGroups": [group], "resources": kinds, "verbs": ["list", "watch"]}
        for group, kinds in RIGHTS.items()
    ]
    authorization = "rbac.authorization.k8s.io"
    machine.server.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta | {"namespace": NAMESPACE}},
        {"apiVersion": f"{authorization}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{authorization}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": authorization, "kind": "ClusterRole", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        },
    )
    file = machine.folder / "Corefile"
    kubeconfig = controller_files.kubeconfig(machine, NAMESPACE, ACCOUNT)
    file.write_text(COREFILE.format(address=box.SERVICE, ready=READY, kubeconfig=kubeconfig))
    machine.children.start("coredns", [str(program), "-conf", str(file)])
    controller_files.until_ready(machine, "coredns", f"http://{READY}/ready")
