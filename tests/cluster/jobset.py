"""JobSet's controller in the box: it makes the Jobs of distributed trials."""

from tests.cluster import building, operators
from tests.cluster.machine import Machine
from tests.cluster.operators import Names, Operator

OPERATOR = Operator("jobset", building.JOBSET, Names.of_kubebuilder("jobset"), webhooks=9545, health=9546)


def start(machine: Machine) -> None:
    """Install JobSet and start it. Raises NoClusterToolsError."""
    operators.start(machine, OPERATOR)
