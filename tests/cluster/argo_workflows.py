"""Argo Workflows in the box: its controller as a process, with the rights of its own manifests.

What differs from an installation: no Deployment, no server, and no image of the program that it puts into pods.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import building, controller_files
from tests.cluster.apiserver import tool
from tests.cluster.machine import Machine

NAME = "workflow-controller"
NAMESPACE = ACCOUNT = "argo"
EXECUTOR = "localhost/argoexec:1"
CONFIG_MAP = "workflow-controller-configmap"
HEALTH = "http://127.0.0.1:6060/healthz"

Manifest = dict[str, Any]


def start(machine: Machine, managed: str) -> None:
    """Install Argo for the Workflows of a namespace, and start its controller. Raises NoClusterToolsError."""
    program = tool(building.WORKFLOWS, NAME)
    machine.server.define(tool(building.WORKFLOW_CRDS), ("argoproj.io_",))
    machine.server.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE}},
        *_rights(program.parent / "rights", NAMESPACE),
        *_rights(program.parent / "rights", managed),
    )
    machine.children.start(
        NAME,
        [
            str(program),
            f"--kubeconfig={controller_files.kubeconfig(machine, NAMESPACE, ACCOUNT)}",
            "--namespaced",
            f"--managed-namespace={managed}",
            f"--executor-image={EXECUTOR}",
        ],
        env={"LEADER_ELECTION_DISABLE": "true"},
    )
    controller_files.until_ready(machine, NAME, HEALTH)


def _rights(folder: Path, namespace: str) -> Iterator[Manifest]:
    """Give the controller the rights of Argo's own manifests in a namespace."""
    for path in sorted(folder.glob("*.yaml")):
        manifest = yaml.safe_load(path.read_text())
        if manifest["kind"] in {"Role", "RoleBinding"}:
            manifest["metadata"]["namespace"] = namespace
            for subject in manifest.get("subjects", ()):
                subject["namespace"] = NAMESPACE
            yield manifest
