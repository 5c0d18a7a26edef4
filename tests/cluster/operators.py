"""Operators in the box, each a process with its own manifests, account and webhooks.

What differs from an installation: there is no Deployment, and the Service of the webhooks is a name for the node's
address, as nothing in the box answers cluster IPs. An operator makes its certificates itself.
"""

import base64
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml as pyyaml

from sweepledger.formats import yaml
from sweepledger.repo import kustomize
from tests.cluster import controller_files
from tests.cluster.apiserver import tool
from tests.cluster.building import Group
from tests.cluster.children import until
from tests.cluster.machine import Machine

SECONDS = 180
LEFT_OUT = frozenset({"Deployment", "APIService", "Service"})
LAST = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})
"""They refuse every pod while nobody answers them."""

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Operator:
    """A controller whose manifests have the names that kubebuilder gives."""

    name: str
    group: Group
    webhooks: int
    health: int
    """Ports, fixed, and nobody's default."""
    options: tuple[str, ...] = ()
    certificates: Path | None = None
    """Where it looks for its certificates as it starts, beside the folder that its configuration names."""

    @property
    def namespace(self) -> str:
        return f"{self.name}-system"

    @property
    def account(self) -> str:
        return f"{self.name}-controller-manager"

    @property
    def service(self) -> str:
        return f"{self.name}-webhook-service"

    @property
    def secret(self) -> str:
        return f"{self.name}-webhook-server-cert"


def start(machine: Machine, operator: Operator, settings: Mapping[str, Any]) -> None:
    """Install an operator, start it with these settings and wait until it is ready. Raises NoClusterToolsError."""
    program = tool(operator.group, operator.name)
    _forget_certificates(operator)  # those of an earlier box would pass for this one's
    made = [_placed(one, operator) for one in _built(program.parent / "config/default")]
    kept = [one for one in made if one["kind"] not in LEFT_OUT | LAST]
    machine.server.apply(*(one for one in kept if one["kind"] in {"Namespace", "CustomResourceDefinition"}))
    machine.server.until_served("crd", "--all")
    machine.server.apply(*kept, _service(machine, operator), *(one for one in made if one["kind"] in LAST))
    folder = machine.folder / operator.name
    folder.mkdir()
    (config,) = (one for one in kept if one["kind"] == "ConfigMap")
    (text,) = config["data"].values()
    configured = yaml.load(text) | _of_a_process(operator, folder) | settings
    (folder / "config.yaml").write_text(yaml.dump(configured))
    machine.children.start(
        operator.name,
        [str(program), f"--config={folder / 'config.yaml'}", *operator.options],
        env={"KUBECONFIG": str(controller_files.kubeconfig(machine, operator.namespace, operator.account))},
    )
    until(f"{operator.name} has made its certificate", lambda: _mounted(machine, operator), seconds=SECONDS)
    controller_files.until_ready(machine, operator.name, f"http://127.0.0.1:{operator.health}/readyz")
    _forget_certificates(operator)


def _forget_certificates(operator: Operator) -> None:
    if operator.certificates is not None:
        shutil.rmtree(operator.certificates, ignore_errors=True)


def _built(folder: Path) -> list[Manifest]:
    """Build an operator's own manifests, whose definitions are deeper than what the product reads of a repository."""
    done = subprocess.run([*kustomize.command(), str(folder)], check=True, capture_output=True)
    return [one for one in pyyaml.load_all(done.stdout, Loader=pyyaml.CSafeLoader) if one]


def _of_a_process(operator: Operator, folder: Path) -> Manifest:
    """Return what a process beside others must change of the configuration that comes with the operator."""
    return {
        "health": {"healthProbeBindAddress": f"127.0.0.1:{operator.health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": operator.webhooks, "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
    }


def _mounted(machine: Machine, operator: Operator) -> bool:
    """Do what the kubelet does for its pod: lay out the Secret that it wrote."""
    name = operator.name
    assert machine.children.is_alive(name), f"{name} ended:\n{machine.children.tail(name)}"
    data = controller_files.got(machine, ("secret", operator.namespace, operator.secret)).get("data") or {}
    for folder in filter(None, (machine.folder / name, operator.certificates)):
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in data.items():
            (folder / file).write_bytes(base64.b64decode(content))
    return "tls.crt" in data


def _service(machine: Machine, operator: Operator) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": operator.service, "namespace": operator.namespace},
        "spec": {"type": "ExternalName", "externalName": machine.address},
    }


def _placed(manifest: Mapping[str, Any], operator: Operator) -> Manifest:
    """Let the API server find the webhooks at their port: there is no Service that would map it."""
    made = deepcopy(dict(manifest))
    where = {"name": operator.service, "namespace": operator.namespace, "port": operator.webhooks}
    for client in _clients(made):
        client["service"] |= where
    return made


def _clients(manifest: Manifest) -> Iterator[Manifest]:
    for webhook in manifest.get("webhooks", ()):
        yield webhook["clientConfig"]
    conversion = manifest.get("spec", {}).get("conversion", {})
    if "webhook" in conversion:
        yield conversion["webhook"]["clientConfig"]
