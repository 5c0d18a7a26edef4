"""How the trials of a sweep run: shape, resources, code mode, retries and timeout."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from sweepledger.structs.program import CodeSelection, DataPlaces
from sweepledger.structs.quantities import format_bytes, format_cpus, whole_quantity


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
    """A Kubernetes quantity of bytes for `/dev/shm`, part of the memory; None: 64 MiB, and nothing in a pack."""

    @property
    def threads(self) -> int:
        """Compute threads of one trial: one for each CPU, rounded up."""
        return max(1, whole_quantity(self.cpu))

    def times(self, count: int) -> "Resources":
        """Return what so many trials need that share a pod, and its GPUs."""
        if count == 1:
            return self
        return Resources(
            cpu=format_cpus(count * whole_quantity(self.cpu, unit=1000)),
            memory=format_bytes(count * whole_quantity(self.memory)),
            gpu=self.gpu,
            scratch=format_bytes(count * whole_quantity(self.scratch)),
            shared_memory=self.shared_memory,
        )


@dataclass(frozen=True, slots=True)
class Pack:
    """Several trials in one pod, consecutive rows of the table; how they run is no part of their identity."""

    trials: int
    """Rows of a pod, each with a process, a folder and a record of its own."""
    at_once: int = 1
    """How many of them run at the same time."""

    def __post_init__(self) -> None:
        if not 1 <= self.at_once <= self.trials:
            raise ValueError(f"`1 <= at_once <= trials` must hold, but got {self.at_once} and {self.trials}")

    def pods(self, trials: int) -> int:
        """Return how many pods run some trials."""
        return -(-trials // self.trials)

    def pod(self, row: int) -> int:
        """Return the completion index of the pod that runs a row."""
        return row // self.trials

    def rows(self, pod: int, trials: int) -> range:
        """Return the rows of a pod, of a table with some trials."""
        return range(min(pod * self.trials, trials), min((pod + 1) * self.trials, trials))


@dataclass(frozen=True, slots=True)
class Infrastructure:
    """How often trials are requested again after a failure of infrastructure, and what else counts as one."""

    retries: int
    """How many further batches may list a trial, after infrastructure ended it in one."""
    exit_codes: tuple[int, ...] = ()
    """Exit codes by which the program reports broken infrastructure, such as a GPU, in order."""

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ValueError(f"`0 <= retries` must hold, but got {self.retries}")


POD_STARTUP_SECONDS = 15 * 60
"""The least that a pod's deadline allows for its start, including the image pull; the launcher times trials."""
WAITING_SECONDS = 7 * 86400
"""How long the trials of a batch may wait for nodes in all, before the deadline of their Job could end them."""
MAX_BACKOFF_SECONDS = 6 * 60
"""The longest time that the Job controller waits before it replaces a failed pod."""
LONGEST_DEADLINE = 2**31 - 1
"""68 years: controllers count nanoseconds in 64 bits."""
OTHER_DISK = 2 << 30
"""Bytes that a pod may write in addition to its volumes: logs, the image's writable layer."""


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
    workdir: str | None = None
    """The folder of the code that trials start in and `program` is relative to; None: they start beside the code."""
    keep: tuple[str, ...] = ()
    """Patterns of files below the folder that trials start in, which become artifacts if the command writes them."""
    data: str | None = None
    """The name of a dataset, or the sorted names of several, joined by `+`."""
    data_places: DataPlaces = field(default_factory=lambda: MappingProxyType({}))
    pool: str | None = None
    """A name among the settings' pools; the default pool is already filled in."""
    cluster: str | None = None
    """A name among the settings' clusters; None: chosen by `structs.placement`."""
    priority: str | None = None
    """A WorkloadPriorityClass of Kueue."""
    resources: Resources = Resources()
    parallelism: int = 1
    retries: int = 0
    max_disruptions: int = 5
    """How often a trial may lose its pod to an eviction, a preemption or a lost node, and start again."""
    infrastructure: Infrastructure | None = None
    """What happens after a failure of infrastructure; None: trials that it ends have failed."""
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
    pack: Pack | None = None
    """In shape `indexed`, how many trials a pod runs; None: one."""
    hyperparams_file: bool = False
    """Whether the launcher writes `hyperparams.yml` to the working directory, as in NVIDIA's example."""

    @property
    def program_folder(self) -> str:
        """The folder of the repository that `program` is relative to."""
        return self.code_path if self.workdir is None else self.workdir

    @property
    def attempts(self) -> int:
        """The largest number of attempts of one trial, without disrupted ones."""
        return self.retries + 1

    @property
    def max_starts(self) -> int:
        """The largest number of attempts of one trial, disrupted ones included."""
        # A trial that ends its pod ends those that run beside it: each of them begins once more, alone.
        is_shared = self.pack is not None and self.pack.at_once > 1
        return self.attempts + self.max_disruptions + is_shared

    @property
    def max_trial_seconds(self) -> int:
        """Upper bound for one trial: every attempt lasts until its timeout, disrupted ones as well."""
        return self.timeout_seconds * self.max_starts

    @property
    def trials_per_pod(self) -> int:
        """How many trials run at the same time in one pod."""
        return 1 if self.pack is None else self.pack.at_once

    def pods(self, trials: int) -> int:
        """Return how many pods run some trials, in shape `indexed`."""
        return trials if self.pack is None else self.pack.pods(trials)

    def pods_at_once(self, trials: int) -> int:
        """Return how many pods of one batch run at the same time, in shape `indexed`."""
        return min(max(1, self.parallelism // self.trials_per_pod), self.pods(trials))

    @property
    def pod_attempts(self) -> int:
        """The largest number of pods of one completion index, without disrupted ones.

        A pod of several trials that fails has cost at least one of them an attempt, or its place beside others.
        """
        if self.pack is None:
            return self.attempts
        return self.pack.trials * (self.max_starts - self.max_disruptions)

    def pod_deadline(self, grace: int, startup: int = POD_STARTUP_SECONDS) -> int:
        """Return the seconds after which a pod ends whose launcher has not ended."""
        # Each trial of a pod may have to run alone.
        trials = 1 if self.pack is None else self.pack.trials
        return min(trials * (self.timeout_seconds + grace) + startup, LONGEST_DEADLINE)

    def job_deadline(self, trials: int, grace: int, startup: int = POD_STARTUP_SECONDS) -> int:
        """Return the seconds after which the Job of some trials ends, whatever its pods do.

        They suffice for all attempts at all trials, one after the other, so only a launcher that a trial has stopped
        from counting disruptions can reach them.
        """
        # Of a pod of several trials, each has its own disruptions, and one begins the others' pod anew.
        disrupted = self.max_disruptions
        if self.pack is not None:
            disrupted = self.pack.trials * (self.max_disruptions + 1)
        attempts = self.pods(trials) * (self.pod_attempts + disrupted)
        longest = self.pod_deadline(grace, startup) + grace + MAX_BACKOFF_SECONDS
        return min(WAITING_SECONDS + attempts * longest, LONGEST_DEADLINE)

    def scratch_bytes(self, code: int) -> int:
        """Return the bytes of a pod's scratch: that of the trials that run at once, each with a copy of the code."""
        return whole_quantity(self.pod_resources.scratch) + self.trials_per_pod * code

    @property
    def pod_resources(self) -> Resources:
        """The resources of one pod."""
        return self.resources.times(self.trials_per_pod)

    @property
    def gpus_per_trial(self) -> float:
        """The GPUs of one trial, on all its nodes; those of a pod are shared by the trials that run there."""
        return self.resources.gpu * self.nodes / self.trials_per_pod

    @property
    def threads(self) -> int:
        """Compute threads of one process: the CPUs of its trial, divided by its processes in a pod."""
        return max(1, self.resources.threads // self.processes)


@dataclass(frozen=True, slots=True)
class RunningState:
    """How a merged batch runs now, whatever its lock says."""

    paused: bool = False
    """Whether none of its trials may run."""
    parallelism: int | None = None
    """How many of its trials run at once; None: as many as it was made for."""
    resumes: int = 0
    """How often it was resumed after a pause, or had fewer at once: each time, its trials may repeat an attempt."""
