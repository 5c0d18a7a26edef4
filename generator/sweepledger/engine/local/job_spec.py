"""What the manifests of a batch ask for, as frozen values: Jobs, their pod, its volumes, its rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from generator.engine.local.quantities import Resources


@dataclass(frozen=True, slots=True)
class Literal:
    """An environment variable with its value; `$(NAME)` in it stands for an earlier variable."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class FieldRef:
    """An environment variable that tells the pod about itself, such as `metadata.uid`."""

    name: str
    field: str


Variable = Literal | FieldRef


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """A ConfigMap in a volume: all of its keys, or those listed, as (key, path)."""

    name: str
    items: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class ConfigVolume:
    """One ConfigMap, or several projected into one folder."""

    sources: tuple[ConfigSource, ...]


@dataclass(frozen=True, slots=True)
class ResultsVolume:
    """The claim that every trial writes its records to."""


@dataclass(frozen=True, slots=True)
class DataVolume:
    """The claim that holds the batch's dataset."""


@dataclass(frozen=True, slots=True)
class KeptVolume:
    """A claim of its own for checkpoints or artifacts."""

    name: str


@dataclass(frozen=True, slots=True)
class ScratchVolume:
    """An emptyDir: lives as long as its pod."""

    limit: int | None
    """Bytes."""


Volume = ConfigVolume | ResultsVolume | KeptVolume | DataVolume | ScratchVolume


@dataclass(frozen=True, slots=True)
class Mount:
    """Where a volume is seen in the container."""

    volume: str
    path: str
    sub_path: str = ""
    """With `$(NAME)` for variables where `expanded` is set."""
    expanded: bool = False


@dataclass(frozen=True, slots=True)
class PodSpec:
    """The one container of a trial's pod."""

    command: tuple[str, ...]
    working_dir: str
    environment: tuple[Variable, ...]
    mounts: tuple[Mount, ...]
    volumes: Mapping[str, Volume]
    requests: Resources
    limits: Resources
    scratch_limit: int | None
    """Bytes of ephemeral storage, all emptyDirs together."""
    grace: float
    deadline: float | None
    """Seconds after which a pod is stopped, whatever its launcher thinks."""
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    annotations: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    arguments: tuple[str, ...] = ()
    """What the command is given as it stands: the trial's own words, no paths of the container."""


class Verdict(StrEnum):
    """What a Job's podFailurePolicy makes of an exit code."""

    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_INDEX = "FailIndex"
    FAIL_JOB = "FailJob"


@dataclass(frozen=True, slots=True)
class ExitRule:
    """One rule of a podFailurePolicy."""

    verdict: Verdict
    codes: frozenset[int]
    negated: bool = False
    """Operator NotIn."""

    def matches(self, code: int) -> bool:
        """Tell whether the rule speaks of this exit code."""
        return code != 0 and (code in self.codes) is not self.negated


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A Job: one index (shape `jobs`), or one for each trial of the batch (shape `indexed`)."""

    name: str
    batch: str
    namespace: str
    indexed: bool
    indexes: tuple[int, ...]
    """Rows of the batch's table, lowest first."""
    parallelism: int
    retries: int
    per_index: bool
    """Whether `retries` is each index's own, or the whole Job's."""
    max_failed: int | None
    """More failed indexes than this fail the Job at once."""
    rules: tuple[ExitRule, ...]
    deadline: float | None
    pod: PodSpec
    digest: str
    """Of the Job and the ConfigMaps of its batch: both are immutable in a cluster."""

    def verdict(self, code: int) -> Verdict:
        """Apply the first rule that speaks of an exit code."""
        return next((rule.verdict for rule in self.rules if rule.matches(code)), Verdict.COUNT)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the batch's table, as far as the engine needs it."""

    trial: str
    digest: str
    seed: int
    """The batch's base and the row's replicate: what its launcher gives the program."""


@dataclass(frozen=True, slots=True)
class Table:
    """What launch.json says of the batch, and its rows: for records that the engine must write itself."""

    code: str
    data: str | None
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """The rendered manifests of one batch, understood."""

    name: str
    jobs: tuple[JobSpec, ...]
    """By their lowest index: the order in which they are started."""
    config_maps: Mapping[str, Mapping[str, str]]
    table: Table
