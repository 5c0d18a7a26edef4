"""Kueue in the box: its controller as a process, with its own manifests, account and webhooks.

What differs from an installation: no Deployment, no visibility API; the Service of the webhooks is a name for
the node's address, as nothing in the box answers cluster IPs. It makes its certificates itself.
"""

import base64
import subprocess
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml as pyyaml

from sweepledger.formats import yaml
from sweepledger.repo import kustomize
from tests.cluster import building, controller_files
from tests.cluster.apiserver import tool
from tests.cluster.children import until
from tests.cluster.machine import Machine

NAME = "kueue"
NAMESPACE = "kueue-system"
ACCOUNT = "kueue-controller-manager"
SERVICE, CERTIFICATE = "kueue-webhook-service", "kueue-webhook-server-cert"
WEBHOOKS, HEALTH = 9543, 9544
"""Fixed, and nobody's default."""
SECONDS = 180
LEFT_OUT = frozenset({"Deployment", "APIService", "Service"})
LAST = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})
"""They refuse every pod while nobody answers them."""

Manifest = dict[str, Any]


def _built(folder: Path) -> list[Manifest]:
    """Build Kueue's own manifests, whose definitions are deeper than what the product reads of a repository."""
    done = subprocess.run([*kustomize.command(), str(folder)], check=True, capture_output=True)
    return [one for one in pyyaml.load_all(done.stdout, Loader=pyyaml.CSafeLoader) if one]


def start(machine: Machine) -> None:
    """Install Kueue, start its controller and wait until its webhooks answer. Raises NoClusterToolsError."""
    program = tool(building.KUEUE, "kueue")
    made = [_placed(one) for one in _built(program.parent / "config/default")]
    kept = [one for one in made if one["kind"] not in LEFT_OUT | LAST]
    machine.server.apply(*(one for one in kept if one["kind"] in {"Namespace", "CustomResourceDefinition"}))
    machine.server.until_served("crd", "--all")
    machine.server.apply(*kept, _service(machine), *(one for one in made if one["kind"] in LAST))
    folder = machine.folder / NAME
    folder.mkdir()
    (config,) = (one for one in kept if one["kind"] == "ConfigMap")
    (text,) = config["data"].values()
    (folder / "config.yaml").write_text(yaml.dump(_configured(yaml.load(text), folder)))
    _run(machine, program)
    until("Kueue has made its certificate", lambda: _mounted(machine, folder), seconds=SECONDS)
    controller_files.until_ready(machine, NAME, f"http://127.0.0.1:{HEALTH}/readyz")


def restart(machine: Machine) -> None:
    """End the controller and start it anew: what it knows is in the cluster."""
    machine.children.end(NAME)
    _run(machine, tool(building.KUEUE, "kueue"))
    controller_files.until_ready(machine, NAME, f"http://127.0.0.1:{HEALTH}/readyz")


def workloads(machine: Machine, namespace: str) -> list[Manifest]:
    """List what waits or runs by a queue: an object a Job."""
    return controller_files.objects(machine, "workloads.kueue.x-k8s.io", namespace)


def is_admitted(workload: Mapping[str, Any]) -> bool:
    """Tell whether a Job may run, or has run."""
    return any(
        one["type"] == "Admitted" and one["status"] == "True"
        for one in controller_files.conditions(workload.get("status", {}))
    )


def _run(machine: Machine, program: Path) -> None:
    machine.children.start(
        NAME,
        [
            str(program),
            f"--config={machine.folder / NAME / 'config.yaml'}",
            "--feature-gates=VisibilityOnDemand=false",
        ],
        env={"KUBECONFIG": str(controller_files.kubeconfig(machine, NAMESPACE, ACCOUNT))},
    )


def _configured(config: Manifest, folder: Path) -> Manifest:
    """Change of the configuration that comes with Kueue what a process beside others must."""
    return config | {
        "namespace": NAMESPACE,  # otherwise that of Argo CD, whose processes have a pod's files in this box
        "health": {"healthProbeBindAddress": f"127.0.0.1:{HEALTH}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": WEBHOOKS, "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
        "integrations": {"frameworks": ["batch/job"]},
    }


def _mounted(machine: Machine, folder: Path) -> bool:
    """Do what the kubelet does for its pod: lay out the Secret that it wrote."""
    assert machine.children.is_alive(NAME), f"{NAME} ended:\n{machine.children.tail(NAME)}"
    data = controller_files.got(machine, ("secret", NAMESPACE, CERTIFICATE)).get("data") or {}
    for name, content in data.items():
        (folder / name).write_bytes(base64.b64decode(content))
    return "tls.crt" in data


def _service(machine: Machine) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": machine.address},
    }


def _placed(manifest: Mapping[str, Any]) -> Manifest:
    """Let the API server find the webhooks at their port: there is no Service that would map it."""
    made = deepcopy(dict(manifest))
    for client in _clients(made):
        client["service"] |= {"name": SERVICE, "namespace": NAMESPACE, "port": WEBHOOKS}
    return made


def _clients(manifest: Manifest) -> Iterator[Manifest]:
    for webhook in manifest.get("webhooks", ()):
        yield webhook["clientConfig"]
    conversion = manifest.get("spec", {}).get("conversion", {})
    if "webhook" in conversion:
        yield conversion["webhook"]["clientConfig"]
