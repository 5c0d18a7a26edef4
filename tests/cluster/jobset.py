"""JobSet's controller in the box: it makes the Jobs of distributed trials."""

from pathlib import Path

from tests.cluster import building, operators
from tests.cluster.machine import Machine
from tests.cluster.operators import Operator

OPERATOR = Operator(
    "jobset",
    building.JOBSET,
    webhooks=9545,
    health=9546,
    certificates=Path("/tmp/k8s-webhook-server/serving-certs"),  # noqa: S108 - no option moves it
)


def start(machine: Machine) -> None:
    """Install JobSet and start it, before Argo CD, whose files of a pod it would read. Raises NoClusterToolsError."""
    operators.start(machine, OPERATOR, {})
