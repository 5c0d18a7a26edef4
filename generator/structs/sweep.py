"""The spec as a value: what a person asked for, checked and typed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil
from types import MappingProxyType

from generator.problems import NOWHERE, Place, Problem
from generator.structs.adaptive import EarlyStop, Impute, Search
from generator.structs.beside import Retry, Script
from generator.structs.reporting import USUAL_FORMATS, MetricFormat, MetricSource, Reduce
from generator.structs.settings import Limits, Pool
from generator.structs.space import SearchSpace
from generator.structs.values import Value


class Goal(StrEnum):
    """Which way the metric should go."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


class Shape(StrEnum):
    """How trials become Kubernetes objects."""

    JOBS = "jobs"
    """A Job a trial."""
    INDEXED = "indexed"
    """One Indexed Job, an index a trial."""
    TRAIN_JOB = "train-job"
    """Of several pods: Kubeflow Trainer's TrainJob a trial, with one TrainingRuntime a batch."""
    MPI_JOB = "mpi-job"
    JOB_SET = "job-set"
    PYTORCH_JOB = "pytorch-job"
    TF_JOB = "tf-job"

    @property
    def is_distributed(self) -> bool:
        """Tell whether a trial has several pods."""
        return self not in {Shape.JOBS, Shape.INDEXED}


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured, and which way is better."""

    name: str
    goal: Goal
    source: MetricSource = MetricSource.RESULT
    format: MetricFormat | None = None
    """None: the usual one of its source."""
    reduce: Reduce = Reduce.LAST
    target: float | None = None
    """A value that is good enough: a search that has one asks for nothing more."""
    impute: Impute = Impute.WORST

    @property
    def reported(self) -> dict[str, str]:
        """Say how trials report it, without what is usual."""
        said = {"source": str(self.source)}
        if self.format not in {None, USUAL_FORMATS[self.source]}:
            said["format"] = str(self.format)
        if self.reduce is not Reduce.LAST:
            said["reduce"] = str(self.reduce)
        return said

    def better(self, left: float, right: float) -> bool:
        """Tell whether left beats right; equal values beat neither way."""
        return left > right if self.goal is Goal.MAXIMIZE else left < right

    def reaches_target(self, value: float) -> bool:
        """Tell whether a value is good enough; without a target none is."""
        return self.target is not None and not self.better(self.target, value)


@dataclass(frozen=True, slots=True)
class Resources:
    """What one trial asks of a node; requests and limits are equal."""

    cpu: str = "1"
    """A Kubernetes quantity of cores."""
    memory: str = "1Gi"
    """A Kubernetes quantity of bytes."""
    gpu: int = 0
    scratch: str = "2Gi"
    """A Kubernetes quantity of bytes: what a trial may write to its own disk."""
    shared_memory: str | None = None
    """A Kubernetes quantity of bytes for `/dev/shm`, part of the memory; None: the container's own 64 MiB."""

    @property
    def threads(self) -> int:
        """Compute threads that so many CPUs bear: one each, rounded up."""
        cores = float(self.cpu[:-1]) / 1000 if self.cpu.endswith("m") else float(self.cpu)
        return max(1, ceil(cores))


class CodeMode(StrEnum):
    """How the locked code comes into the pod."""

    IMAGE = "image"
    """It is baked in, at `/code`."""
    CLONE = "clone"
    """An init container takes exactly the locked tree from git."""


@dataclass(frozen=True, slots=True)
class Run:
    """How trials run. A change applies to the next batch only."""

    image: str | None = None
    """A name among the settings' images, a reference with digest, or `local`; None: the settings' default."""
    interpreter: str = "python3"
    """What starts the launcher inside the image, and what `${interpreter}` stands for."""
    code_path: str = "trainer"
    code_mode: CodeMode = CodeMode.IMAGE
    data: str | None = None
    pool: str | None = None
    """A name among the settings' pools; their default is filled in."""
    priority: str | None = None
    """A WorkloadPriorityClass of Kueue."""
    resources: Resources = Resources()
    parallelism: int = 1
    retries: int = 0
    timeout_seconds: int = 3600
    expected_minutes: float | None = None
    """What its author thinks one trial takes; it stands where nothing is recorded, and binds nobody."""
    seed_base: int = 0
    shape: Shape | None = None
    """None: chosen by the number of trials."""
    max_failed: int | None = None
    """In shape `indexed`, one failed trial more stops the batch; None: none does."""
    nodes: int = 1
    """Pods of a trial in a distributed shape."""
    processes: int = 1
    """Processes a pod in a distributed shape."""
    secrets: tuple[str, ...] = ()
    """Names among the settings' secrets."""
    egress: tuple[str, ...] = ()
    """Names among the settings' egress."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Plain variables for the command; no part of the program, no secret."""
    hyperparams_file: bool = False
    """Whether `hyperparams.yml` lies in the trial's working directory, as NVIDIA's example writes it."""

    @property
    def threads(self) -> int:
        """Compute threads of one process: the CPUs of its pod, shared by all that run there."""
        return max(1, self.resources.threads // self.processes)


class Sampler(StrEnum):
    """A method that draws its trials."""

    RANDOM = "random"
    SOBOL = "sobol"
    HALTON = "halton"
    LATIN_HYPERCUBE = "latin-hypercube"


@dataclass(frozen=True, slots=True)
class Grid:
    """Every combination; the last parameter varies fastest."""

    space: SearchSpace
    cap: int | None = None
    """At most so many assignments; only a shuffled grid may be larger."""
    seed: int | None = None
    """Of the order; None: the order written."""
    place: Place = NOWHERE

    @property
    def method(self) -> str:
        """The method's name in a spec."""
        return "grid"


@dataclass(frozen=True, slots=True)
class Draw:
    """Assignments drawn from the space, the same for the same seed for ever."""

    sampler: Sampler
    space: SearchSpace
    seed: int
    cap: int
    """How many assignments, after constraints and without repetitions."""
    place: Place = NOWHERE

    @property
    def method(self) -> str:
        """The method's name in a spec."""
        return str(self.sampler)


@dataclass(frozen=True, slots=True)
class Listing:
    """Assignments that a person wrote down; the space adds constants, derived values and constraints."""

    space: SearchSpace
    assignments: tuple[Mapping[str, Value], ...]
    place: Place = NOWHERE

    @property
    def method(self) -> str:
        """The method's name in a spec."""
        return "list"

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the assignments, in the order in which they first appear."""
        return tuple(dict.fromkeys(name for assignment in self.assignments for name in assignment))


Block = Grid | Draw | Listing | Search


@dataclass(frozen=True, slots=True)
class Budget:
    """What a sweep may cost at most."""

    max_trials: int | None = None
    max_gpu_hours: float | None = None
    """Of trials * (retries + 1) * timeout * GPUs, as long as no estimate is better."""
    trials_place: Place = NOWHERE
    hours_place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Sweep:
    """A checked spec."""

    name: str
    description: str
    metric: Metric
    blocks: tuple[Block, ...]
    """At least one; their assignments follow each other, each counted once. A search is alone."""
    command: tuple[str, ...]
    """With the path of the program written out; other macros as in the spec."""
    run: Run
    path: str
    """Of the spec, relative to the repository."""
    digest: str
    """Of the spec's bytes and the file of assignments beside it, `sha256:…`."""
    replicates: int = 1
    """How often each assignment runs, each time with another seed."""
    budget: Budget = Budget()
    cancel: tuple[str, ...] = ()
    """Batches that must not go on."""
    retry: tuple[Retry, ...] = ()
    limits: Limits = field(default_factory=Limits)
    """The repository's, which hold beside its own budget."""
    pool: Pool | None = None
    """What the settings say of the pool that it runs in."""
    pool_place: Place = NOWHERE
    """Where the spec says how much runs at once: the nodes for it are counted with the trials."""
    shape_place: Place = NOWHERE
    """Where the spec chooses a shape: whether it can is known when the trials are counted."""
    code_place: Place = NOWHERE
    """Where the spec says in which folder the code lies; where nothing is said, at what runs."""
    scripts: tuple[Script, ...] = ()
    warnings: tuple[Problem, ...] = ()
    """What its author may want to know; it stops nothing."""
    other_metrics: tuple[Metric, ...] = ()
    """What a front is looked for in beside the metric; reported as that is."""
    early_stop: EarlyStop | None = None
    """What ends a trial before its time."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All that is measured; the first is the metric of whatever takes one only."""
        return (self.metric, *self.other_metrics)

    @property
    def search(self) -> Search | None:
        """The sweep's only block where that goes by rounds."""
        match self.blocks:
            case (Search() as found,):
                return found
            case _:
                return None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names that assignments can have, in the order in which the spec first has them."""
        found: dict[str, None] = {}
        for block in self.blocks:
            parameters = [parameter.name for parameter in block.space.parameters]
            listed = block.names if isinstance(block, Listing | Search) else ()
            found |= dict.fromkeys([*parameters, *listed, *(value.name for value in block.space.derived)])
        return tuple(found)
