"""The specification of a batch's Jobs, as frozen values: pods, volumes, resources, exit-code rules, table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil
from types import MappingProxyType

from sweepledger.structs.run_config import Pack


@dataclass(frozen=True, slots=True)
class ResourceAmounts:
    """Resources that a pod requests, or a machine has."""

    milli_cpus: int = 0
    memory: int = 0
    """Bytes."""
    gpus: int = 0

    def plus(self, other: "ResourceAmounts") -> "ResourceAmounts":
        """Return the sums of both."""
        return ResourceAmounts(
            self.milli_cpus + other.milli_cpus, self.memory + other.memory, self.gpus + other.gpus
        )

    def fits(self, capacity: "ResourceAmounts") -> bool:
        """Return whether a capacity is large enough."""
        return (
            self.milli_cpus <= capacity.milli_cpus
            and self.memory <= capacity.memory
            and self.gpus <= capacity.gpus
        )

    def share(self, count: int, of: int) -> "ResourceAmounts":
        """Return what `count` of `of` equal parts need, rounded up, which share the GPUs."""
        cpus, memory = (-(-amount * count // of) for amount in (self.milli_cpus, self.memory))
        return ResourceAmounts(cpus, memory, self.gpus)

    @property
    def cpus(self) -> int:
        """Whole CPUs, rounded up; 0 if it requests none."""
        return ceil(self.milli_cpus / 1000)


@dataclass(frozen=True, slots=True)
class LiteralVariable:
    """An environment variable with its value; `$(NAME)` in it refers to an earlier variable."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class FieldVariable:
    """An environment variable with a field of the pod, such as `metadata.uid`."""

    name: str
    field: str


Variable = LiteralVariable | FieldVariable


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """A ConfigMap in a volume: all its keys, or the listed ones, as (key, path)."""

    name: str
    items: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class ConfigVolume:
    """One ConfigMap, or several projected into one folder."""

    sources: tuple[ConfigSource, ...]


@dataclass(frozen=True, slots=True)
class ResultsVolume:
    """The claim for the records of all trials."""


@dataclass(frozen=True, slots=True)
class DataVolume:
    """A claim with data of the batch, or its copy: here, the folder of all its data."""


@dataclass(frozen=True, slots=True)
class KeptVolume:
    """A claim for checkpoints or artifacts."""

    name: str


@dataclass(frozen=True, slots=True)
class ScratchVolume:
    """An emptyDir, which is deleted with its pod."""

    limit: int | None
    """Bytes."""


PodVolume = ConfigVolume | ResultsVolume | KeptVolume | DataVolume | ScratchVolume


@dataclass(frozen=True, slots=True)
class Mount:
    """The path of a volume in the container."""

    volume: str
    path: str
    sub_path: str = ""
    """Contains variables as `$(NAME)` if `expanded` is set."""
    expanded: bool = False


@dataclass(frozen=True, slots=True)
class PodSpec:
    """The one container of a trial's pod."""

    command: tuple[str, ...]
    code: str
    """Folder of the locked code in the container."""
    environment: tuple[Variable, ...]
    mounts: tuple[Mount, ...]
    volumes: Mapping[str, PodVolume]
    requests: ResourceAmounts
    limits: ResourceAmounts
    scratch_limit: int | None
    """Bytes of ephemeral storage for all emptyDirs together."""
    grace: float
    deadline: float | None
    """Seconds after which the pod is stopped; None: no limit."""
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    annotations: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    arguments: tuple[str, ...] = ()
    """Arguments of the command; unlike the command they contain no paths of the container."""


class FailureAction(StrEnum):
    """The action of a Job's podFailurePolicy for an exit code."""

    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_INDEX = "FailIndex"
    FAIL_JOB = "FailJob"


@dataclass(frozen=True, slots=True)
class ExitCodeRule:
    """One rule of a podFailurePolicy."""

    action: FailureAction
    codes: frozenset[int]
    negated: bool = False
    """Operator NotIn."""

    def matches(self, code: int) -> bool:
        """Return whether the rule applies to an exit code."""
        return code != 0 and (code in self.codes) is not self.negated


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The Job of one trial (shape `jobs`), or of all trials of the batch (shape `indexed`)."""

    name: str
    batch: str
    namespace: str
    has_own_row: bool
    """Whether it runs one row of the table, which its environment names, instead of one per completion index."""
    indexes: tuple[int, ...]
    """Row indexes of the batch's table, ascending."""
    parallelism: int
    retries: int
    """Of each index."""
    max_failed: int | None
    """Number of failed indexes that the Job tolerates; None: no limit."""
    rules: tuple[ExitCodeRule, ...]
    deadline: float | None
    pod: PodSpec
    digest: str
    """Digest of the Job and the ConfigMaps of its batch, which are immutable in a cluster."""
    pack: Pack | None = None
    """How many rows a pod runs; None: one."""
    is_paused: bool = False
    """Whether no further pod starts; those that run go on."""

    def completion_index(self, pod: int) -> int:
        """Return the completion index of a pod, which has the number of its row, unless it runs several."""
        return 0 if self.has_own_row else pod

    def pod_number(self, row: int) -> int:
        """Return the number of the pod that runs a row."""
        return row if self.pack is None else self.pack.pod(row)

    def rows(self, pod: int) -> tuple[int, ...]:
        """Return the rows that a pod runs."""
        if self.pack is None:
            return (pod,)
        rows = self.pack.rows(pod, self.indexes[-1] + 1)
        return tuple(range(max(rows.start, self.indexes[0]), rows.stop))

    def attempt(self, uid: str, row: int) -> str:
        """Return the id of a pod's attempt at a row."""
        return uid if self.pack is None else f"{uid}-{row}"

    def failure_action(self, code: int) -> FailureAction:
        """Return the action of the first rule that applies to an exit code."""
        return next((rule.action for rule in self.rules if rule.matches(code)), FailureAction.COUNT)


@dataclass(frozen=True, slots=True)
class TrialRow:
    """The parts of a row that the engine needs."""

    trial: str
    digest: str
    seed: int
    """The trial's seed: seed base of the batch plus replicate."""


@dataclass(frozen=True, slots=True)
class TrialTable:
    """Values of launch.json and the rows of the batch, for records that the engine writes itself."""

    code: str
    data: str | None
    rows: tuple[TrialRow, ...]
    pack: Pack | None = None
    """How many rows a pod runs; None: one."""
    attempts: int = 1
    """Of a row, if pods run several."""


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """The rendered manifests of one batch, parsed."""

    name: str
    jobs: tuple[JobSpec, ...]
    """By their lowest index, in which order they start."""
    config_maps: Mapping[str, Mapping[str, str]]
    table: TrialTable

    @property
    def is_paused(self) -> bool:
        """Whether no further pod of it starts."""
        return any(job.is_paused for job in self.jobs)
