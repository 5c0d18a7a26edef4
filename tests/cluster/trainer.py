"""The controller of Kubeflow's Trainer in the box, beside JobSet's: it makes the JobSets of TrainJobs."""

import os
from pathlib import Path

from sweepledger.formats import yaml
from tests.cluster import building, operators
from tests.cluster.apiserver import tool
from tests.cluster.machine import Machine
from tests.cluster.operators import Names, Operator
from tests.manifests import manifest

PARTS = ("crds", "manager", "rbac", "webhook")
NAME = "kubeflow-trainer-controller-manager"
SECRET = "kubeflow-trainer-webhook-cert"  # noqa: S105 - a name
OPERATOR = Operator(
    "trainer",
    building.TRAINER,
    Names("kubeflow-system", account=NAME, service=NAME, secret=SECRET),
    webhooks=9547,
    health=9548,
)


def start(machine: Machine) -> None:
    """Install Trainer and start it, after JobSet. Raises NoClusterToolsError."""
    operators.start(machine, OPERATOR, manifests=_manifests(machine))


def _manifests(machine: Machine) -> Path:
    """Write what its own overlay writes, without the JobSet that it would fetch."""
    bases = tool(building.TRAINER, OPERATOR.name).parent / "config/base"
    folder = machine.folder / "trainer-manifests"
    folder.mkdir()
    namespace = manifest("Namespace", OPERATOR.names.namespace)
    (folder / "namespace.yaml").write_text(yaml.dump(namespace))
    kustomization = {
        "namespace": OPERATOR.names.namespace,
        "resources": ["namespace.yaml", *(os.path.relpath(bases / part, folder) for part in PARTS)],
        "secretGenerator": [{"name": SECRET, "options": {"disableNameSuffixHash": True}}],
    }
    (folder / "kustomization.yaml").write_text(yaml.dump(kustomization))
    return folder
