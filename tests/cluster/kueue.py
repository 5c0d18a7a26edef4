"""Kueue in the box, without its visibility API."""

from tests.cluster import building, controller_files, operators
from tests.cluster.machine import Machine
from tests.cluster.operators import Manifest, Names, Operator

JOBS, JOB_SETS = "batch/job", "jobset.x-k8s.io/jobset"
"""Kinds that it can queue."""
OPERATOR = Operator(
    "kueue",
    building.KUEUE,
    Names.of_kubebuilder("kueue"),
    webhooks=9543,
    health=9544,
    options=("--feature-gates=VisibilityOnDemand=false",),
)


def start(machine: Machine, *frameworks: str) -> None:
    """Install Kueue and start it for Jobs, or for these kinds. Raises NoClusterToolsError."""
    operators.start(machine, OPERATOR, {"integrations": {"frameworks": [*(frameworks or (JOBS,))]}})


def workloads(machine: Machine, namespace: str) -> list[Manifest]:
    """List what waits or runs by a queue: an object a Job."""
    return controller_files.objects(machine, "workloads.kueue.x-k8s.io", namespace)
