"""What a controller has done so far, and what differs between git and the cluster: nothing if all is well."""

import os
import subprocess
from collections.abc import Mapping
from typing import Any

from tests.cluster import controller_files
from tests.cluster.apiserver import kubectl
from tests.cluster.machine import Machine
from tests.e2e.controllers import APPLICATION
from tests.e2e.team import NAMESPACE, Batch, Team

WRITERS = ("kustomize-controller", "argocd-controller")
"""What they are called where an object says who wrote it."""


def objects(team: Team, *batches: Batch) -> dict[str, Mapping[str, Any]]:
    """Say of each object of batches which it is, and when a controller has last written to it."""
    names = tuple(batch.name for batch in batches)
    documents: dict[str, Mapping[str, Any]] = {}
    for group, kind in (("/api/v1", "configmaps"), ("/apis/batch/v1", "jobs")):
        listed = team.server.ask(f"{group}/namespaces/{NAMESPACE}/{kind}")
        assert listed is not None
        for entry in (item["metadata"] for item in listed["items"]):
            if entry["name"].startswith(names):
                document = {
                    by["manager"]: by["time"] for by in entry["managedFields"] if by["manager"] in WRITERS
                }
                documents[f"{kind}/{entry['name']}"] = {"uid": entry["uid"], **document}
    return documents


def operations(machine: Machine) -> dict[str, Mapping[str, Any]]:
    """Say what Argo CD has done for each Application, and how each of its objects stands."""
    documents: dict[str, Mapping[str, Any]] = {}
    for item in controller_files.objects(machine, APPLICATION, "argocd"):
        status = item["status"]
        documents[item["metadata"]["name"]] = {
            "began": status.get("operationState", {}).get("startedAt"),
            "history": [entry["deployedAt"] for entry in status.get("history", ())],
            "resources": {part["name"]: part.get("status") for part in status.get("resources", ())},
        }
    return documents


def difference(team: Team, batch: Batch) -> str:
    """Give what would change if a person applied an overlay as git has it; empty where nothing would."""
    environment = {**os.environ, "KUBECONFIG": str(team.server.kubeconfig), "KUBECTL_KUBERC": "false"}
    names = [
        *("diff", "--server-side", "--force-conflicts", "--field-manager=a-person", "-k"),
        str(batch.folder),
    ]
    done = subprocess.run([kubectl(), *names], env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def warnings(machine: Machine, namespace: str, *batches: Batch) -> list[str]:
    events = controller_files.objects(machine, "events", namespace)
    names = {batch.name for batch in batches}
    return [
        event["message"]
        for event in events
        if event["type"] != "Normal" and event["involvedObject"]["name"] in names
    ]
