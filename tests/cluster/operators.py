"""Operators in the box, each a process with its own manifests, account and webhooks.

What differs from an installation: there is no Deployment, and the Service of the webhooks is a name for the node's
address, as nothing in the box answers cluster IPs. An operator makes its certificates itself.
"""

import base64
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
from tests.cluster.controller_files import POD_ACCOUNT
from tests.cluster.machine import Machine
from tests.manifests import manifest

SECONDS = 180
LEFT_OUT = frozenset({"Deployment", "APIService", "Service"})
LAST = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})
"""They refuse every pod while nobody answers them."""

CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")  # noqa: S108 - no option of every operator moves it
HIDE = (
    f"mkdir -p {POD_ACCOUNT} {CERTIFICATES} && mount -t tmpfs none {POD_ACCOUNT} "
    f'&& mount --bind "$0" {CERTIFICATES} && exec "$@"'
)
AS_IN_A_POD = ("unshare", "--mount", "sh", "-c", HIDE)
"""The folder of an operator's certificates follows: it is where its pod would have it.

The files of Argo CD's pod are hidden, in which an operator would look for its own namespace.
"""

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Names:
    """What an operator's own manifests call what its process needs to know."""

    namespace: str
    account: str
    service: str
    """Of its webhooks."""
    secret: str
    """With the certificate of its webhooks."""

    @classmethod
    def of_kubebuilder(cls, name: str) -> "Names":
        made = ("system", "controller-manager", "webhook-service", "webhook-server-cert")
        return cls(*(f"{name}-{ending}" for ending in made))


@dataclass(frozen=True)
class Operator:
    """A controller with webhooks, and a configuration file of the form that controller-runtime has for them."""

    name: str
    group: Group
    names: Names
    webhooks: int
    health: int
    """Ports, fixed, and nobody's default."""
    options: tuple[str, ...] = ()


def start(
    machine: Machine,
    operator: Operator,
    settings: Mapping[str, Any] | None = None,
    *,
    manifests: Path | None = None,
) -> None:
    """Install an operator, start it with these settings and wait until it is ready. Raises NoClusterToolsError.

    Its manifests are a folder for kustomize, `config/default` of its module unless another is given.
    """
    program = tool(operator.group, operator.name)
    made = [_placed(one, operator) for one in _built(manifests or program.parent / "config/default")]
    kept = [one for one in made if one["kind"] not in LEFT_OUT | LAST]
    machine.server.apply(*(one for one in kept if one["kind"] in {"Namespace", "CustomResourceDefinition"}))
    machine.server.until_served("crd", "--all")
    machine.server.apply(*kept, _service(machine, operator), *(one for one in made if one["kind"] in LAST))
    folder, names = machine.folder / operator.name, operator.names
    certificates = folder / "certificates"
    certificates.mkdir(parents=True)
    (config,) = (one for one in kept if one["kind"] == "ConfigMap")
    (text,) = config["data"].values()
    configured = yaml.load(text) | _of_a_process(operator) | dict(settings or {})
    (folder / "config.yaml").write_text(yaml.dump(configured))
    machine.children.start(
        operator.name,
        [
            *AS_IN_A_POD,
            str(certificates),
            str(program),
            f"--config={folder / 'config.yaml'}",
            *operator.options,
        ],
        env={"KUBECONFIG": str(controller_files.kubeconfig(machine, names.namespace, names.account))},
    )
    until(
        f"{operator.name} has made its certificate",
        lambda: _laid_out(machine, operator, certificates),
        seconds=SECONDS,
    )
    controller_files.until_ready(machine, operator.name, f"http://127.0.0.1:{operator.health}/readyz")


def _built(folder: Path) -> list[Manifest]:
    """Build an operator's own manifests, whose definitions are deeper than what the product reads of a repository."""
    done = subprocess.run([*kustomize.command(), str(folder)], check=True, capture_output=True)
    return [one for one in pyyaml.load_all(done.stdout, Loader=pyyaml.CSafeLoader) if one]


def _of_a_process(operator: Operator) -> Manifest:
    """Return what a process beside others must change of the configuration that comes with the operator."""
    return {
        "health": {"healthProbeBindAddress": f"127.0.0.1:{operator.health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": operator.webhooks},
        "leaderElection": {"leaderElect": False},
    }


def _laid_out(machine: Machine, operator: Operator, certificates: Path) -> bool:
    """Do what the kubelet does for its pod: lay out the Secret that it wrote."""
    name, names = operator.name, operator.names
    assert machine.children.is_alive(name), f"{name} ended:\n{machine.children.tail(name)}"
    data = controller_files.got(machine, ("secret", names.namespace, names.secret)).get("data") or {}
    for file, content in data.items():
        (certificates / file).write_bytes(base64.b64decode(content))
    return "tls.crt" in data


def _service(machine: Machine, operator: Operator) -> Manifest:
    outside = {"type": "ExternalName", "externalName": machine.address}
    return manifest("Service", operator.names.service, operator.names.namespace, spec=outside)


def _placed(manifest: Mapping[str, Any], operator: Operator) -> Manifest:
    """Let the API server find the webhooks at their port: there is no Service that would map it."""
    made = deepcopy(dict(manifest))
    names = operator.names
    where = {"name": names.service, "namespace": names.namespace, "port": operator.webhooks}
    for client in _clients(made):
        client["service"] |= where
    return made


def _clients(manifest: Manifest) -> Iterator[Manifest]:
    for webhook in manifest.get("webhooks", ()):
        yield webhook["clientConfig"]
    conversion = manifest.get("spec", {}).get("conversion", {})
    if "webhook" in conversion:
        yield conversion["webhook"]["clientConfig"]
