"""The spec as a value: what a person asked for, checked and typed."""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from generator.structs.space import SearchSpace


class Goal(StrEnum):
    """Which way the metric should go."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


class MetricSource(StrEnum):
    """Where a trial leaves its metrics."""

    RESULT = "result"
    """JSON in the file `$SWEEP_RESULT`."""
    STDOUT = "stdout"
    """Lines `name=value` on standard output; the last one of a name counts."""


class Shape(StrEnum):
    """How trials become Kubernetes objects."""

    JOBS = "jobs"
    INDEXED = "indexed"


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured, and which way is better."""

    name: str
    goal: Goal
    source: MetricSource = MetricSource.RESULT

    def better(self, left: float, right: float) -> bool:
        """Tell whether left beats right; equal values beat neither way."""
        return left > right if self.goal is Goal.MAXIMIZE else left < right


@dataclass(frozen=True, slots=True)
class Resources:
    """What one trial asks of a node; requests and limits are equal."""

    cpu: str = "1"
    """A Kubernetes quantity of cores."""
    memory: str = "1Gi"
    """A Kubernetes quantity of bytes."""
    gpu: int = 0

    @property
    def threads(self) -> int:
        """Compute threads a trial may use: one for each CPU, rounded up."""
        cores = float(self.cpu[:-1]) / 1000 if self.cpu.endswith("m") else float(self.cpu)
        return max(1, ceil(cores))


@dataclass(frozen=True, slots=True)
class Run:
    """How trials run. A change applies to the next batch only."""

    image: str | None = None
    """None: the settings' default."""
    interpreter: str = "python3"
    """What starts the launcher inside the image, and what `${interpreter}` stands for."""
    code_path: str = "trainer"
    data: str | None = None
    resources: Resources = Resources()
    parallelism: int = 1
    retries: int = 0
    timeout_seconds: int = 3600
    seed_base: int = 0
    shape: Shape | None = None
    """None: chosen by the number of trials."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A checked spec."""

    name: str
    description: str
    method: str
    metric: Metric
    space: SearchSpace
    command: tuple[str, ...]
    run: Run
    path: str
    """Of the spec, relative to the repository."""
    digest: str
    """Of the spec's bytes, `sha256:…`."""
