"""How the trials of a sweep run: shape, resources, code mode, retries and timeout."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Self

from msgspec import Meta, Struct
from msgspec.structs import replace

from sweepledger.model.keys import EMPTY, UNWRITTEN, EntryOf, OneOf, TextForm, like, some
from sweepledger.model.text_forms import DNS_LABEL, ImageName, Text
from sweepledger.structs.kubernetes import JOB, JOB_SET, TRAINING_RUNTIME, Kind, training_job
from sweepledger.structs.program import CodeSelection, ConfigFile, DataPlaces, PathPattern
from sweepledger.structs.quantities import Cores, Memory, Seconds, format_bytes, format_cpus, whole_quantity
from sweepledger.structs.space import MAX_TRIALS


class Shape(StrEnum):
    """How trials become Kubernetes objects, with their kind."""

    kind: Kind

    def __new__(cls, name: str, kind: Kind = JOB) -> Self:
        """Return the shape of a name."""
        shape = str.__new__(cls, name)
        shape._value_, shape.kind = name, kind
        return shape

    JOBS = "jobs"
    """One Job per trial."""
    INDEXED = "indexed"
    """One Indexed Job with one index per trial."""
    TRAIN_JOB = (
        "train-job",
        Kind(
            *("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs", ("spec",)),
            owner=JOB_SET.kind,
            shared=TRAINING_RUNTIME,
            recreates_pods=True,
            unsupported={
                "bucket": "its trials share a pod template, which does not tell the sidecar of a bucket its trial; "
                "use job-set"
            },
        ),
    )
    """One TrainJob of Kubeflow Trainer per trial, and one TrainingRuntime per batch."""
    MPI_JOB = (
        "mpi-job",
        training_job(
            *("MPIJob", "mpiReplicaSpecs", "v2beta1"),
            waits="Worker",
            unsupported={
                "pods": "its operator makes pods without the finalizer that keeps them; choose store: volume, or "
                "train-job"
            },
        ),
    )
    JOB_SET = "job-set", JOB_SET
    PYTORCH_JOB = "pytorch-job", training_job("PyTorchJob", "pytorchReplicaSpecs")
    TF_JOB = "tf-job", training_job("TFJob", "tfReplicaSpecs")

    @property
    def is_distributed(self) -> bool:
        """Whether a trial has several pods."""
        return self.kind is not JOB


SHAPE_KINDS: Mapping[str, Kind] = MappingProxyType({shape.kind.kind: shape.kind for shape in Shape})
"""The kinds of all shapes, by name."""

SHAPES = (
    "How trials become Kubernetes objects. Default: `jobs` or `indexed` by the number of trials.\n\n"
    "- `jobs`: one readable Job per trial\n- `indexed`: one Indexed Job\n"
    f"- {', '.join(f'`{shape}`' for shape in Shape if shape.is_distributed)}: "
    "trials with several pods, one object each."
)


class Resources(Struct, frozen=True):
    """Resources of one trial. Requests and limits are equal."""

    cpu: Annotated[Cores, Meta(examples=[1, 0.5, "500m"])] = "1"
    """Cores: a number, or thousandths with `m`."""
    memory: Annotated[Memory, Meta(examples=["2Gi"])] = "1Gi"
    """Memory with its unit: Ki, Mi, Gi, Ti, or k, M, G, T."""
    gpu: Annotated[int, Meta(ge=0, le=64, examples=[1])] = 0
    """Number of GPUs."""
    scratch: Annotated[Memory, Meta(examples=["20Gi"])] = "2Gi"
    """Space that a trial may use on its local disk, with its unit."""
    shared_memory: Annotated[Memory, Meta(examples=["1Gi"])] | None = None
    """Size of `/dev/shm`, with its unit, as part of the memory. Default: 64 MiB, and nothing in a pack."""

    @property
    def threads(self) -> int:
        """Compute threads of one trial: one for each CPU, rounded up."""
        return max(1, whole_quantity(self.cpu))

    def times(self, count: int) -> "Resources":
        """Return what so many trials need that share a pod, and its GPUs."""
        if count == 1:
            return self
        return replace(
            self,
            cpu=format_cpus(count * whole_quantity(self.cpu, unit=1000)),
            memory=format_bytes(count * whole_quantity(self.memory)),
            scratch=format_bytes(count * whole_quantity(self.scratch)),
        )


class Pack(Struct, frozen=True):
    """Several trials in one pod, consecutive rows of the table; how they run is no part of their identity."""

    trials: Annotated[int, Meta(ge=1, le=1000, examples=[20])]
    """Number of trials of a pod."""
    at_once: Annotated[int, Meta(ge=1, le=128, examples=[4])] = 1
    """How many of them run at once. The pod has that many times the `resources`; they share its GPUs."""

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


class Infrastructure(Struct, frozen=True):
    """Requests trials again after a failure of infrastructure, in further batches, which use up none of `retries`."""

    retries: Annotated[int, Meta(ge=0, le=10, examples=[2])]
    """Number of times a trial is requested again after a failure of infrastructure."""
    exit_codes: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=125, examples=[91])], ...], Meta(min_length=1)
    ] = ()
    """Exit codes by which the program reports broken infrastructure, such as a GPU with an XID error."""


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
    CLONE = "clone"


INTERPRETER_FORM = like(
    "[A-Za-z0-9_./][A-Za-z0-9_./+-]{0,254}",
    "must be the name or path of a Python interpreter, without arguments",
    "python3",
    "interpreter",
)
"""Without a cluster, a path may also be relative."""
PATTERNS = some(64)
CodePattern = Annotated[
    str,
    TextForm(
        lambda text: PathPattern.parse(text) and text,
        "code-pattern",
        note="as in .gitignore, for example data/, *.csv, /docs or src/**/tests/",
    ),
]
_KEPT_NAME = r"(?!\.\.?(?:/|$))(?:\*\*|(?:(?!\*\*)[^/\\])+)"
KeptFiles = Annotated[
    str,
    like(
        f"{_KEPT_NAME}(?:/{_KEPT_NAME})*/?",
        "must be a pattern of files below the folder that trials start in, with names between slashes, "
        "without '.', '..' and '\\', and '**' alone",
        code="keep-path",
        note="for example *.pt or out/**; let the program write what is elsewhere to $SWEEP_ARTIFACTS",
        fits=str.isprintable,
    ),
    Meta(max_length=200, examples=["out/**", "*.pt"]),
]

CodePath = Annotated[
    str, Meta(description="File or folder, relative to the repository.", examples=["src", "train.py"])
]


class CodeKeys(Struct, frozen=True):
    """The code that trials run."""

    path: Annotated[
        str | Annotated[tuple[CodePath, ...], PATTERNS], Meta(examples=["trainer", ".", ["src", "train.py"]])
    ] = "trainer"
    """Folder of the code, relative to the repository, or `.`: the repository, without what belongs to sweeps; or a list
    of files and folders, to which `program` is not relative. Its git tree is locked with the first batch."""
    include: Annotated[tuple[CodePattern, ...], PATTERNS, Meta(examples=[["*.py", "/configs/"]])] = ()
    """Patterns as in .gitignore, relative to the repository: only files that match one are code. Default: all."""
    exclude: Annotated[tuple[CodePattern, ...], PATTERNS, Meta(examples=[["data/", "*.ipynb"]])] = ()
    """Patterns as in .gitignore, relative to the repository: files that match one are not code."""
    mode: Annotated[CodeMode, Meta(examples=["clone"])] = CodeMode.IMAGE
    """How the code reaches the pod: `image`, in which it is at `/code`, or `clone`: an init container fetches exactly
    the locked tree from git."""


DatasetName = Annotated[str, Meta(description="Name of one of several datasets.", examples=["labels"])]
DatasetPlace = Annotated[
    str,
    Meta(
        description="Path of a link to the dataset of this name, relative to the folder that a trial starts in: in the "
        "code, or one level above it. null: the dataset is only below $SWEEP_DATA.",
        max_length=200,
        extra_json_schema={"type": ["string", "null"]},
        examples=["../data"],
    ),
]
DATASETS = some(16)
WrittenData = Annotated[
    str | Annotated[tuple[DatasetName, ...], DATASETS] | Annotated[Mapping[str, DatasetPlace], DATASETS],
    Meta(
        description="Name of a dataset in sweepledger.yaml, mounted read-only at $SWEEP_DATA; or a list of names, each "
        "mounted at $SWEEP_DATA/NAME; or names with places where trials find them, too.",
        examples=["mnist", ["images", "labels"], {"mnist": "../data"}],
    ),
]
WORKLOAD_PRIORITY = like(
    DNS_LABEL.pattern, "must be the name of a WorkloadPriorityClass", "urgent", "queue-priority"
)


class RunConfig(Struct, frozen=True):
    """How trials run. A change affects only later batches."""

    image: ImageName | None = None
    """Container image: a name among the settings' images, a reference with its digest, or `local`: no image, the locked
    code runs as processes. Default: the settings' image."""
    interpreter: Annotated[str, INTERPRETER_FORM] = "python3"
    """The Python 3.8 or newer inside the image that starts the launcher, and the value of ${interpreter}."""
    # The folder that `program` is relative to; `.` is the repository.
    code_path: Annotated[str, OneOf((("code", CodeKeys),))] = "trainer"
    code_selection: Annotated[CodeSelection, UNWRITTEN] | None = None
    """The files of the code; None: everything in the folder."""
    code_mode: Annotated[CodeMode, UNWRITTEN] = CodeMode.IMAGE
    workdir: Annotated[str, Meta(max_length=200, examples=["mnist"])] | None = None
    """Folder of the code that trials start in, relative to the repository. Default: trials start beside the
    folder of the code."""
    keep: Annotated[tuple[KeptFiles, ...], some()] = ()
    """Patterns of files that the command writes below the folder that it starts in, and that become artifacts: `**`
    stands for any number of folders."""
    config: ConfigFile | None = None
    data: Annotated[str, OneOf((("data", WrittenData),))] | None = None
    """The name of a dataset, or the sorted names of several, joined by `+`."""
    data_places: Annotated[DataPlaces, UNWRITTEN] = EMPTY
    pool: Annotated[str, EntryOf("pools")] | None = None
    """Name among the settings' pools. Default: the settings' pool."""
    cluster: Annotated[str, Meta(examples=["eu"])] | None = None
    """Name among the settings' clusters. Default: where the newest batch of the sweep ran, else one that the name of
    the sweep decides."""
    priority: Annotated[str, WORKLOAD_PRIORITY] | None = None
    """WorkloadPriorityClass of Kueue, for a pool with a queue."""
    resources: Annotated[Resources, Meta(examples=[{"cpu": 1, "memory": "2Gi"}])] = Resources()
    parallelism: Annotated[int, Meta(ge=1, le=MAX_TRIALS, examples=[4])] = 1
    """Number of trials that may run at once, a multiple of `pack.at_once`. Default with `pack`: `at_once`."""
    retries: Annotated[int, Meta(ge=0, le=10, examples=[1])] = 0
    """Number of times a trial is started again after a failure that its hyperparameters did not cause. Default: the
    settings'."""
    max_disruptions: Annotated[int, Meta(ge=0, le=100, examples=[20])] = 5
    """Number of times a trial is started again after an eviction, a preemption or a lost node, in addition to
    `retries`. For shapes `jobs` and `indexed`."""
    infrastructure: Infrastructure | None = None
    timeout_seconds: Annotated[Seconds, Meta(examples=["10m"])] = 3600
    """Longest time one attempt of a trial may take: a whole number and s, m, h or d. Default: the settings'."""
    expected_minutes: Annotated[float, Meta(gt=0, le=100_000, examples=[2.5])] | None = None
    """Minutes that you expect one trial to take, for the estimate of `sweep plan` until trials are recorded."""
    seed_base: Annotated[int, Meta(ge=0, le=2**31 - 1, examples=[0])] = 0
    """The seed of a trial's first replicate; all configurations have the same seeds."""
    shape: Annotated[Shape, Meta(description=SHAPES, examples=["indexed"])] | None = None
    """None: chosen by the number of trials."""
    max_failed: Annotated[int, Meta(ge=0, le=MAX_TRIALS, examples=[10])] | None = None
    """Number of failed trials that a batch of shape `indexed` tolerates; one more stops it. Default: no limit."""
    nodes: Annotated[int, Meta(ge=1, le=100, examples=[4])] = 1
    """Number of pods of a trial, in shapes with several pods; each has the resources."""
    processes: Annotated[int, Meta(ge=1, le=1024, examples=[8])] = 1
    """Processes per pod, in shapes with several pods."""
    secrets: Annotated[tuple[Annotated[str, EntryOf("secrets")], ...], Meta(max_length=100)] = ()
    """Names among the settings' secrets: the command receives each as an environment variable."""
    egress: Annotated[tuple[Annotated[str, EntryOf("egress")], ...], Meta(max_length=100)] = ()
    """Names among the settings' egress networks, which the trial may reach."""
    environment: Annotated[Mapping[str, Text], Meta(max_length=100, examples=[{"PYTHONUNBUFFERED": "1"}])] = (
        EMPTY
    )
    """Environment variables of the command. They do not create new trials, so do not write hyperparameters or secrets
    here."""
    environment_lock: Annotated[str, Meta(examples=["uv.lock"])] | None = None
    """File of the code that pins what trials run with: uv.lock, pylock.toml, conda-lock.yml, or requirements*.txt
    with hashes.
    """
    pack: Annotated[Pack, Meta(examples=[{"trials": 20, "at_once": 4}])] | None = None
    """Several trials in one pod, for trials of seconds or minutes. `sweep plan` proposes the numbers."""
    hyperparams_file: Annotated[bool, Meta(examples=[True])] = False
    """Whether the working directory has a file `hyperparams.yml`, as scripts written for NVIDIA's example read it."""

    @property
    def code_roots(self) -> tuple[str, ...]:
        """The paths to list files of the code below; none if the whole repository must be listed."""
        return (self.code_path,) if self.code_selection is None else self.code_selection.roots

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
        return self.attempts + self.max_disruptions + (self.packed.at_once > 1)

    @property
    def max_trial_seconds(self) -> int:
        """Upper bound for one trial: every attempt lasts until its timeout, disrupted ones as well."""
        return self.timeout_seconds * self.max_starts

    @property
    def packed(self) -> Pack:
        """How trials share pods: without `pack`, each has its own."""
        return self.pack or Pack(1)

    @property
    def trials_per_pod(self) -> int:
        """How many trials run at the same time in one pod."""
        return self.packed.at_once

    def pods_at_once(self, trials: int) -> int:
        """Return how many pods of one batch run at the same time, in shape `indexed`."""
        return min(max(1, self.parallelism // self.trials_per_pod), self.packed.pods(trials))

    @property
    def pod_attempts(self) -> int:
        """The largest number of pods of one completion index, without disrupted ones."""
        # A pod of several trials that fails has cost at least one of them an attempt, or its place beside others.
        return self.packed.trials * (self.max_starts - self.max_disruptions)

    def pod_deadline(self, grace: int, startup: int = POD_STARTUP_SECONDS) -> int:
        """Return the seconds after which a pod ends whose launcher has not ended."""
        # Each trial of a pod may have to run alone.
        return min(self.packed.trials * (self.timeout_seconds + grace) + startup, LONGEST_DEADLINE)

    def job_deadline(self, trials: int, grace: int, startup: int = POD_STARTUP_SECONDS) -> int:
        """Return the seconds after which the Job of some trials ends, whatever its pods do."""
        # All attempts at all trials, one after the other: only a launcher that a trial has stopped from counting
        # disruptions can reach them.
        # Of a pod of several trials, each has its own disruptions, and one begins the others' pod anew.
        disrupted = self.packed.trials * (self.max_disruptions + (self.pack is not None))
        attempts = self.packed.pods(trials) * (self.pod_attempts + disrupted)
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
    def threads(self) -> int:
        """Compute threads of one process: the CPUs of its trial, divided by its processes in a pod."""
        return max(1, self.resources.threads // self.processes)


class RunningState(Struct, frozen=True):
    """How a merged batch runs now, whatever its lock says."""

    paused: Annotated[bool, Meta(examples=[True])] = False
    """Whether no trial of the batch may run."""
    parallelism: Annotated[int, Meta(ge=1, le=MAX_TRIALS, examples=[4])] | None = None
    """How many trials of the batch run at once, in shape `indexed`. Default: as many as it was made for."""
    resumes: Annotated[int, Meta(ge=0, le=1000, examples=[1])] = 0
    """How often the batch was resumed, or had fewer trials at once; budgets charge each. It only grows."""
