"""Metrics: goal and target, how trials report them, what a diverged trial counts as, and the Pareto front."""

import operator
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Meta, Struct

from sweepledger.model.keys import like, some
from sweepledger.structs.values import as_data

MAX_METRIC_NAME_LENGTH = 63
DEFAULT_METRIC = "score"
"""The name of a metric that the user did not name."""
METRIC_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_./@-]{{0,{MAX_METRIC_NAME_LENGTH - 1}}}", re.ASCII)


class MetricSource(StrEnum):
    """Where a trial reports its metrics."""

    RESULT = "result"
    STDOUT = "stdout"
    OUTPUT = "output"

    @property
    def is_printed(self) -> bool:
        """Whether metrics are lines that the trial prints."""
        return self is not MetricSource.RESULT


class MetricFormat(StrEnum):
    """Format in which a trial reports its metrics."""

    JSON = "json"
    """One JSON object in a file."""
    JSONL = "jsonl"
    """One JSON object per line, with its step."""
    TEXT = "text"
    """Lines that contain `name=value`."""
    LOG = "log"
    """Lines `key,value`."""
    CSV = "csv"
    """A table with a header, in a file."""
    REGEX = "regex"
    """Lines that patterns match."""
    TENSORBOARD = "tensorboard"
    """Scalars of event files."""


class Reduce(StrEnum):
    """Which value of a metric counts if a trial reports several."""

    LAST = "last"
    MIN = "min"
    MAX = "max"


REPORT_KEYS = frozenset({"source", "format", "reduce", "path", "patterns", "capture", "curve"})
"""Keys of a metric that say how trials report it."""

DEFAULT_FORMATS: Mapping[MetricSource, MetricFormat] = MappingProxyType(
    {source: MetricFormat.TEXT if source.is_printed else MetricFormat.JSON for source in MetricSource}
)
"""Format if the spec names none."""


class Impute(StrEnum):
    """The value that a diverged trial counts as."""

    WORST = "worst"
    BEST = "best"
    LATEST = "latest"
    """Its last finite value; the worst value if it reported none."""


class Goal(StrEnum):
    """Direction of optimization."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


LOWER_IS_BETTER = frozenset(
    {"loss", "logloss", "error", "rmse", "mse", "mae", "perplexity", "ppl", "regret", "seconds"}
)


def words_of(name: str) -> list[str]:
    """Return the words of a metric's name, in small letters."""
    return re.findall(r"[a-z]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


def usual_goal(name: str) -> Goal:
    """Return the goal that the words of a metric's name suggest."""
    return Goal.MINIMIZE if LOWER_IS_BETTER & {*words_of(name)} else Goal.MAXIMIZE


MetricForm = Annotated[
    str,
    like(
        METRIC_NAME.pattern,
        "must begin with a letter and have at most 63 letters, digits and any of _ . / @ -",
        code="metric-name",
    ),
]
MetricName = Annotated[
    MetricForm, Meta(description="Name of the metric as the trial reports it.", examples=["test_accuracy"])
]
GoalKey = Annotated[
    Goal, Meta(description="Whether to `minimize` or `maximize` the metric.", examples=["maximize"])
]
ImputeKey = Annotated[
    Impute,
    Meta(
        description="How an adaptive search counts a diverged trial: as the `worst` or the `best` value of the trials "
        "with status ok, or as its own `latest`.",
        examples=["worst"],
    ),
]

Pattern = Annotated[str, Meta(min_length=1, examples=[r"loss=(?P<value>\S+)"])]


class Metric(Struct, frozen=True):
    """A number that trials report, and the direction of optimization."""

    name: MetricName
    goal: GoalKey = Goal.MINIMIZE
    source: Annotated[MetricSource, Meta(examples=["result"])] = MetricSource.RESULT
    """Where a trial writes its metrics: `result` is the file $SWEEP_RESULT, `stdout` is standard output,
    `output` is standard output and standard error."""
    format: Annotated[MetricFormat, Meta(examples=["jsonl"])] | None = None
    """Format of the metrics. Default: json for result, text for stdout."""
    reduce: Annotated[Reduce, Meta(examples=["max"])] = Reduce.LAST
    """Which number of the metric counts if a trial reports several, in all formats but json and log."""
    target: Annotated[float, Meta(examples=[0.99])] | None = None
    """A value that is good enough: an adaptive search ends when a trial has reached it."""
    impute: ImputeKey = Impute.WORST
    path: Annotated[str, Meta(min_length=1, examples=["logs/**/metrics.csv"])] | None = None
    """Files that are read instead of $SWEEP_RESULT, relative to the working directory, with $NAME and wildcards."""
    patterns: Annotated[tuple[Pattern, ...], some(20)] = ()
    """Regular expressions of the format `regex`, with the group `value`, and optionally `name` and `step`."""
    capture: Annotated[bool, Meta(examples=[True])] = False
    """Whether metrics that a Python program logs to W&B or MLflow are captured; needs `format: jsonl`."""
    curve: Annotated[MetricForm, Meta(examples=["val_accuracy"])] | None = None
    """The metric by step that early stopping and charts compare, with the goal of the objective. Default: the
    objective."""

    @property
    def reported(self) -> dict[str, Any]:
        """How trials report the metric, without defaults."""
        usual = {"format": DEFAULT_FORMATS[self.source], "reduce": Reduce.LAST}
        return {
            name: value
            for name, value in as_data(self).items()
            if name in REPORT_KEYS and value != usual.get(name)
        }

    @property
    def of_curve(self) -> str:
        """The name of the metric by step that early stopping and charts compare."""
        return self.curve or self.name

    def better(self, left: float, right: float) -> bool:
        """Return whether `left` is better than `right`."""
        return self.sort_key(left) < self.sort_key(right)

    def sort_key(self, value: float) -> float:
        """Return a number that is smaller for better values."""
        return -value if self.goal is Goal.MAXIMIZE else value


def pareto_indices(values: Sequence[tuple[float, ...]], metrics: Sequence[Metric]) -> tuple[int, ...]:
    """Return the indices of the Pareto front, best in the first metric first, equal ones in their order."""
    keys = [tuple(map(Metric.sort_key, metrics, point)) for point in values]
    front: list[int] = []
    for index in sorted(range(len(keys)), key=keys.__getitem__):
        # In this order no later point can dominate an earlier one.
        better = (keys[member] for member in front if keys[member] != keys[index])
        if not any(all(map(operator.le, point, keys[index])) for point in better):
            front.append(index)
    return tuple(front)
