"""The kinds of object that batches consist of, by shape."""

from dataclasses import dataclass

from generator.render.platform.source import Source
from generator.structs.sweep import Shape


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind, as project lists and as access rules name it."""

    group: str
    kind: str
    plural: str


JOB = Kind("batch", "Job", "jobs")
CONFIG_MAP = Kind("", "ConfigMap", "configmaps")

DISTRIBUTED: dict[Shape, tuple[Kind, ...]] = {
    Shape.TRAIN_JOB: (
        Kind("trainer.kubeflow.org", "TrainJob", "trainjobs"),
        Kind("trainer.kubeflow.org", "TrainingRuntime", "trainingruntimes"),
    ),
    Shape.MPI_JOB: (Kind("kubeflow.org", "MPIJob", "mpijobs"),),
    Shape.JOB_SET: (Kind("jobset.x-k8s.io", "JobSet", "jobsets"),),
    Shape.PYTORCH_JOB: (Kind("kubeflow.org", "PyTorchJob", "pytorchjobs"),),
    Shape.TF_JOB: (Kind("kubeflow.org", "TFJob", "tfjobs"),),
}


def rendered(source: Source) -> tuple[Kind, ...]:
    """List what overlays may hold in this cluster."""
    return (JOB, CONFIG_MAP, *chosen(source))


def chosen(source: Source) -> tuple[Kind, ...]:
    """List the custom kinds that the cluster has controllers for."""
    return tuple(kind for shape in sorted(source.shapes) for kind in DISTRIBUTED[shape])
