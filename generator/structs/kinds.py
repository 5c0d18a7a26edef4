"""The kinds of object that batches consist of: one table for who renders, judges and asks for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from generator.structs.sweep import Shape


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind, as manifests, project lists, access rules and the API name it."""

    group: str
    version: str
    kind: str
    plural: str
    policy: tuple[str, ...] = ()
    """Where an object says whether its run is suspended, and when it must end; empty: nothing runs."""
    has_ttl: bool = False
    """Whether it can say there how long after its end it is deleted."""
    replicas: str | None = None
    """The key of its spec with a pod template a role."""

    @property
    def api_version(self) -> str:
        """Give what a manifest says."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """Give what kubectl calls it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


RUN_POLICY = ("spec", "runPolicy")

CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
JOB = Kind("batch", "v1", "Job", "jobs", ("spec",), has_ttl=True)
TRAIN_JOB = Kind("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs", ("spec",))
TRAINING_RUNTIME = Kind("trainer.kubeflow.org", "v1alpha1", "TrainingRuntime", "trainingruntimes")
MPI_JOB = Kind("kubeflow.org", "v2beta1", "MPIJob", "mpijobs", RUN_POLICY, True, "mpiReplicaSpecs")
JOB_SET = Kind("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets", ("spec",), has_ttl=True)
PYTORCH_JOB = Kind("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", RUN_POLICY, True, "pytorchReplicaSpecs")
TF_JOB = Kind("kubeflow.org", "v1", "TFJob", "tfjobs", RUN_POLICY, True, "tfReplicaSpecs")

RUNNERS: Mapping[Shape, Kind] = MappingProxyType(
    {
        Shape.JOBS: JOB,
        Shape.INDEXED: JOB,
        Shape.TRAIN_JOB: TRAIN_JOB,
        Shape.MPI_JOB: MPI_JOB,
        Shape.JOB_SET: JOB_SET,
        Shape.PYTORCH_JOB: PYTORCH_JOB,
        Shape.TF_JOB: TF_JOB,
    }
)
"""What runs the trials of a shape."""

OF_ALL_TRIALS: Mapping[Shape, tuple[Kind, ...]] = MappingProxyType({Shape.TRAIN_JOB: (TRAINING_RUNTIME,)})
"""What the trials of a batch share beside ConfigMaps."""

RUNNING: Mapping[str, Kind] = MappingProxyType({kind.kind: kind for kind in RUNNERS.values()})
"""By name."""
