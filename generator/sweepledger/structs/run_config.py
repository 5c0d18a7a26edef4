"""How the trials of a sweep run: shape, resources, code mode, retries and timeout."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from sweepledger.structs.program import CodeSelection
from sweepledger.structs.quantities import whole_quantity


class Shape(StrEnum):
    """How trials become Kubernetes objects."""

    JOBS = "jobs"
    """One Job per trial."""
    INDEXED = "indexed"
    """One Indexed Job with one index per trial."""
    TRAIN_JOB = "train-job"
    """One TrainJob of Kubeflow Trainer per trial, and one TrainingRuntime per batch."""
    MPI_JOB = "mpi-job"
    JOB_SET = "job-set"
    PYTORCH_JOB = "pytorch-job"
    TF_JOB = "tf-job"

    @property
    def is_distributed(self) -> bool:
        """Whether a trial has several pods."""
        return self not in {Shape.JOBS, Shape.INDEXED}


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of one trial; requests and limits are equal."""

    cpu: str = "1"
    """A Kubernetes quantity of cores."""
    memory: str = "1Gi"
    """A Kubernetes quantity of bytes."""
    gpu: int = 0
    scratch: str = "2Gi"
    """A Kubernetes quantity of bytes: ephemeral storage of a trial."""
    shared_memory: str | None = None
    """A Kubernetes quantity of bytes for `/dev/shm`, part of the memory; None: the container's default of 64 MiB."""

    @property
    def threads(self) -> int:
        """Compute threads of one trial: one for each CPU, rounded up."""
        return max(1, whole_quantity(self.cpu))


class CodeMode(StrEnum):
    """How the locked code gets into the pod."""

    IMAGE = "image"
    """The image contains it at `/code`."""
    CLONE = "clone"
    """An init container fetches exactly the locked tree from git."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """How trials run. A change affects only later batches."""

    image: str | None = None
    """A name among the settings' images, a reference with digest, or `local`; None: the settings' default."""
    interpreter: str = "python3"
    """Interpreter that starts the launcher in the image, and value of `${interpreter}`."""
    code_path: str = "trainer"
    """The folder that `program` is relative to; `.` is the repository."""
    code_selection: CodeSelection | None = None
    """The files of the code; None: everything in the folder."""
    code_mode: CodeMode = CodeMode.IMAGE
    data: str | None = None
    pool: str | None = None
    """A name among the settings' pools; the default pool is already filled in."""
    priority: str | None = None
    """A WorkloadPriorityClass of Kueue."""
    resources: Resources = Resources()
    parallelism: int = 1
    retries: int = 0
    max_disruptions: int = 5
    """How often a trial may lose its pod to an eviction, a preemption or a lost node, and start again."""
    timeout_seconds: int = 3600
    expected_minutes: float | None = None
    """The author's estimate for one trial, used for forecasts while nothing is recorded."""
    seed_base: int = 0
    shape: Shape | None = None
    """None: chosen by the number of trials."""
    max_failed: int | None = None
    """In shape `indexed`, more failed trials than this stop the batch; None: no limit."""
    nodes: int = 1
    """Pods per trial in a distributed shape."""
    processes: int = 1
    """Processes per pod in a distributed shape."""
    secrets: tuple[str, ...] = ()
    """Names among the settings' secrets."""
    egress: tuple[str, ...] = ()
    """Names among the settings' egress."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Plain variables for the command; not part of the program, and not secret."""
    environment_lock: str | None = None
    """The lock file of the trials' environment, relative to the repository; None: not locked."""
    hyperparams_file: bool = False
    """Whether the launcher writes `hyperparams.yml` to the working directory, as in NVIDIA's example."""

    @property
    def attempts(self) -> int:
        """The largest number of attempts of one trial, without disrupted ones."""
        return self.retries + 1

    @property
    def max_starts(self) -> int:
        """The largest number of attempts of one trial, disrupted ones included."""
        return self.attempts + self.max_disruptions

    @property
    def max_trial_seconds(self) -> int:
        """Upper bound for one trial: every attempt lasts until its timeout, disrupted ones as well."""
        return self.timeout_seconds * self.max_starts

    @property
    def threads(self) -> int:
        """Compute threads of one process: the CPUs of its pod, divided by the processes there."""
        return max(1, self.resources.threads // self.processes)
