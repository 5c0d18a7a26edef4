"""Records of attempts and results of trials."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

from sweepledger.structs.metric import METRIC_NAME, Metric, pareto_indices
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, CanonicalText, Value


class Status(StrEnum):
    """Status of a trial's result. Only trials that are `ok` are ranked."""

    OK = "ok"
    DIVERGED = "diverged"
    """Exit code 42, or a metric that is not finite. Never retried."""
    PRUNED = "pruned"
    """A rule of early stopping ended it. Never retried."""
    FAILED = "failed"
    TIMEOUT = "timeout"
    """It failed: it exceeded its timeout."""
    OOM = "oom"
    """It failed: it exceeded its memory limit."""
    EVICTED = "evicted"
    """It failed: the cluster evicted its pod, or lost the node."""
    MISSING = "missing"
    """No attempt left a record."""
    CANCELLED = "cancelled"
    """Its batch was cancelled before an attempt ended."""
    CORRUPT = "corrupt"
    """No attempt left a valid record: its file cannot be read."""
    FOREIGN = "foreign"
    """No attempt left a record of this trial: its file belongs to another trial or to none."""

    @property
    def is_final(self) -> bool:
        """Whether the trial is finished: no further attempt can change the status."""
        return self in {Status.OK, Status.DIVERGED, Status.PRUNED}

    @property
    def is_success(self) -> bool:
        """Whether the attempt succeeded: its launcher exits with 0."""
        return self in {Status.OK, Status.PRUNED}

    @property
    def kind(self) -> "Status":
        """The coarser status that specs and commands accept: `failed` or `missing` for its special cases."""
        return _KINDS.get(self, self)


_KINDS = {
    Status.TIMEOUT: Status.FAILED,
    Status.OOM: Status.FAILED,
    Status.EVICTED: Status.FAILED,
    Status.CORRUPT: Status.MISSING,
    Status.FOREIGN: Status.MISSING,
}

RETRYABLE_STATUSES = frozenset(status.kind for status in Status if not status.is_final)
"""Statuses that `sweep retry` retries."""

RECORDED_STATUSES = frozenset({Status.OK, Status.DIVERGED, Status.FAILED, Status.PRUNED})
"""Statuses that a launcher records."""

RAN_PROCESS = "process"
"""Value of `ran` for `sweep cluster local` and `sweep try`."""
RAN_NOTHING = "nothing"
"""Value of `ran` for a pod whose container never started."""

LARGEST_TRIAL_FILE = 1 << 20
"""Bytes of a record or of a trial's output; the launcher writes none that is larger, and larger ones are ignored."""
MAX_ARTIFACTS = 1000
MAX_CURVES = 100
MAX_CURVE_POINTS = 200
MAX_METRICS = 101
MAX_ROWS = 10_000_000
LONGEST_SECONDS = 10**10
"""Three centuries: sums of more could overflow."""
MAX_ATTEMPTS = 1_000_000_000
"""The launcher accepts a number of earlier failures with nine digits."""
_LONG = 2**63
_HEX = "[0-9a-f]{64}"
TRIAL_ID = "t[0-9a-f]{11}"
BATCH_NAME = "[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"
_LEAP_YEAR = "[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00"
_DAY = (
    "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:{_LEAP_YEAR})-02-29"
)
TIME = rf"(?!0000)(?:{_DAY})T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?Z"
# A relative path below its folder; file names cannot contain NUL.
_PATH = r"(?!/|[\s\S]*//|(?:[\s\S]*/)?\.{1,2}(?:/|(?![\s\S])))[^\u0000]{1,1024}"


def _whole(pattern: str) -> Meta:
    return Meta(pattern=rf"^(?:{pattern})\Z")


Sha256 = Annotated[str, _whole(_HEX)]
PrefixedDigest = Annotated[str, _whole(f"sha256:{_HEX}")]
Word = Annotated[str, _whole("[a-z0-9][a-z0-9-]{0,63}")]
Time = Annotated[str, _whole(TIME)]
"""UTC, ISO 8601 with a final Z."""
ReportedName = Annotated[str, _whole(METRIC_NAME.pattern)]
Step = Annotated[int, Meta(ge=0, le=LARGEST_EXACT_INTEGER)]
Earlier = Annotated[int, Meta(ge=0, le=MAX_ATTEMPTS)]


class Artifact(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that an attempt left on the results volume, by content."""

    path: Annotated[str, _whole(_PATH)]
    """Path below the attempt's folder of artifacts."""
    bytes: Annotated[int, Meta(ge=0, le=_LONG - 1)]
    sha256: Sha256


CurvePoint = tuple[Step, float | None]


class Curve(CanonicalText, Sequence[CurvePoint]):
    """The points of a learning curve, parsed when they are read."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(_parsed_curve(self.text))

    def __getitem__(self, place: Any) -> Any:
        return _parsed_curve(self.text)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # equal to tuples, whose hash it cannot have


@lru_cache(maxsize=1)
def _parsed_curve(text: str) -> tuple[CurvePoint, ...]:
    return tuple((step, None if value is None else float(value)) for step, value in json.loads(text))


def step_restarts(points: Sequence[CurvePoint]) -> int:
    """Return how often the steps of a curve do not grow: a fold, or a second training, begins there."""
    steps = [step for step, _ in points[:]]
    return sum(step >= later for step, later in pairwise(steps))


class ArtifactList(Struct, frozen=True, forbid_unknown_fields=True):
    """A list of artifacts that is too long for the record: a file next to it on the results volume."""

    count: Annotated[int, Meta(ge=1, le=MAX_ARTIFACTS)]
    bytes: Annotated[int, Meta(ge=1, le=LARGEST_TRIAL_FILE)]
    sha256: Sha256


class Environment(Struct, frozen=True, forbid_unknown_fields=True):
    """The software that an attempt ran with, by content."""

    kind: Annotated[str, _whole("lock|distributions")]
    """`lock` for a lock file, `distributions` for the list of installed Python distributions."""
    digest: PrefixedDigest


class EarlyStop(Struct, frozen=True, forbid_unknown_fields=True):
    """The rule that ended an attempt early."""

    rule: Word
    step: Step
    threshold: float | None
    seen: PrefixedDigest | None
    """Digest of the file of thresholds that the rule came from; None if it is in launch.json."""


Count = Annotated[int, Meta(ge=0)]


class LeftOutAttempts(Struct, frozen=True, forbid_unknown_fields=True):
    """The attempts of a trial that git keeps no records of, only their numbers."""

    failed: Count = 0
    disrupted: Count = 0
    """Ended by an eviction, a preemption or a lost node."""
    ignored: Count = 0
    """Files that are no valid record of the trial, or exceeded a bound."""
    seconds: Annotated[float, Meta(ge=0)] = 0.0
    """How long the failed and disrupted attempts took."""


NOT_FINITE = ("nan", "inf", "-inf")
"""What the launcher writes among the details for a metric that is not a finite number."""

ERROR_DETAILS = ("error", "said")
"""Details with a message on how the attempt ended, from the launcher or from the engine."""

NO_CURVES: Mapping[str, Sequence[CurvePoint]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one attempt, written by the launcher and validated by the collector."""

    trial: Annotated[str, _whole(TRIAL_ID)]
    row: Sha256
    """Digest of the table row that it ran."""
    batch: Annotated[str, _whole(BATCH_NAME)]
    index: Annotated[int, Meta(ge=0, lt=MAX_ROWS)]
    uid: Annotated[str, _whole("[A-Za-z0-9][A-Za-z0-9._-]{0,127}")]
    """UID of the pod, and file name of the record."""
    attempt: Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS)]
    disruptions: Earlier
    """How many earlier pods of the trial the cluster ended."""
    status: Status
    """One of `RECORDED_STATUSES`."""
    reason: Word | None
    """None: it is ok."""
    metrics: Annotated[Mapping[ReportedName, float | None], Meta(max_length=MAX_METRICS)]
    """None: reported, but not a finite number."""
    seconds: Annotated[float, Meta(ge=0, le=LONGEST_SECONDS)]
    started: Time
    finished: Time
    ran: Annotated[str, _whole("[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,511}")]
    """An image with its digest, `RAN_PROCESS` or `RAN_NOTHING`."""
    code: Annotated[str, _whole(f"[0-9a-f]{{40}}|{_HEX}")]
    """The git tree that the launcher reports; results use the tree of the batch lock."""
    data: Annotated[str, _whole(rf"sha256:{_HEX}|version:[^\u0000-\u001f]{{1,1024}}")] | None
    seed: Annotated[int, Meta(ge=-_LONG, le=_LONG - 1)]
    node: Annotated[str, _whole("[A-Za-z0-9._-]{0,253}")] | None
    environment: Environment | None
    """None: nothing was started."""
    details: Mapping[str, Any]
    """Further values that the trial reported: device, versions, data digest."""
    artifacts: Annotated[tuple[Artifact, ...], Meta(max_length=MAX_ARTIFACTS)] = ()
    curves: Annotated[
        Mapping[
            ReportedName, Annotated[Sequence[CurvePoint], Meta(min_length=1, max_length=MAX_CURVE_POINTS)]
        ],
        Meta(max_length=MAX_CURVES),
    ] = field(default_factory=lambda: NO_CURVES)
    """Learning curves: metrics by step, thinned; None: not a finite number."""
    artifact_list: ArtifactList | None = None
    """Instead of `artifacts`, if these are too many for the record."""
    stopped: EarlyStop | None = None
    shared: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """At most how many trials of the same pod ran at the same time; None: its pod has one."""
    observed: tuple[Time, Time] | None = None
    """When its container started and ended, as the cluster or the local engine saw it: no part of the record."""
    others: LeftOutAttempts | None = None
    """The attempts of the trial that this record stands for in git: no part of the record."""
    thresholds: str | None = None
    """The file of thresholds that `stopped.seen` names, as far as it is known: no part of the record."""

    def curve(self, metric: str) -> Sequence[CurvePoint]:
        """Return the learning curve of a metric; empty if the record has none."""
        return self.curves.get(metric, ())

    @property
    def reported(self) -> Mapping[str, float | None]:
        """Every metric that the trial reported; None: not a finite number."""
        infinite = dict.fromkeys(name for name, value in self.details.items() if value in NOT_FINITE)
        return {**infinite, **self.metrics}

    @property
    def error(self) -> str | None:
        """The message on how the attempt ended; None if there is none."""
        messages = (self.details.get(name) for name in ERROR_DETAILS)
        return next((message for message in messages if isinstance(message, str)), None)

    @property
    def error_line(self) -> str:
        """The last line of this message, in which a traceback has its cause; empty if there is none."""
        return next((line.strip() for line in reversed((self.error or "").split("\n")) if line.strip()), "")

    @property
    def charged_seconds(self) -> float:
        """How long the attempt took: as its container was observed, else as its launcher reported it."""
        if self.observed is None:
            return self.seconds
        start, end = map(datetime.fromisoformat, self.observed)
        return max(0.0, (end - start).total_seconds())

    @property
    def ran_image(self) -> bool:
        """Whether an image ran, according to the record."""
        return self.ran not in {RAN_PROCESS, RAN_NOTHING}


@dataclass(frozen=True, slots=True)
class ExpectedTrial:
    """A row of a batch's table, which a valid record must match."""

    trial: str
    row: str
    """Digest of the row, 64 hex digits."""
    index: int
    assignment: Mapping[str, Value]
    replicate: int = 0


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of one trial of a batch: one row of the summary."""

    trial: str
    batch: str
    index: int
    assignment: Mapping[str, Any]
    status: Status
    reason: str | None
    attempts: int
    record: Record | None
    """The record that counts; None if there is no valid record."""
    program: str
    """Digest of the program, 64 hex digits."""
    code: str
    data: str | None
    replicate: int = 0
    """Number of the replicate, from 0; each has its own seed."""
    in_spec: bool | None = None
    """Whether the current spec contains the trial; None if that is unknown."""
    node_class: str | None = None
    """The pool on whose nodes the batch ran; None for no pool."""
    parent: str | None = None
    """Id of the parent trial, from the batch lock."""
    error: str | None = None
    """What was said of its failure, such as the last line of a traceback: one short line of visible characters."""

    def metric(self, name: str) -> float | None:
        """Return a metric for ranking; None unless the trial is ok and reported it."""
        if self.status is not Status.OK or self.record is None:
            return None
        return self.record.metrics.get(name)


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A line of `summary.csv`: each member is a column, and the text below it is what docs/results.md says of it.

    Those with a default are optional: a summary has the column if any trial has a value, and one of an earlier version
    has it not. `of` fills a column from the member of its name that the result has, or else the record.
    """

    trial: str
    """Its id."""
    batch: str
    """The batch whose result counts."""
    index: int
    """The row in the table of that batch."""
    replicate: int
    """Number of the repetition of the configuration, from 0."""
    in_spec: bool | None
    """Whether the spec contained this configuration and replicate when the summary was written; empty if that is
    unknown.
    """
    status: Status
    """The result; see below."""
    reason: str | None
    """Why it is not `ok`; see below."""
    attempts: int
    """Number of attempts, as far as it is known."""
    program: str
    """Digest of what ran: image, command, code, data."""
    assignment: Mapping[str, Value]
    """The values; empty if the trial does not have the parameter."""
    metrics: Mapping[str, float]
    """The objective first, the others by name; empty if not reported or not finite."""
    seconds: float | None
    """Duration of the attempt that counts."""
    node_class: str | None
    """The pool in the batch's lock."""
    seed: int | None
    """The attempt's seed."""
    code: str
    """Git tree of the code."""
    ran: str | None
    """The image with its digest, or `process`."""
    data: str | None
    """Digest of the dataset."""
    started: str | None
    """When the attempt that counts started, by its node's clock."""
    finished: str | None
    """When it ended, by the same clock."""
    parent: str | None = None
    """The trial that this one continues."""
    error: str | None = None
    """Why the trial failed, such as `ValueError: rate must be positive`, at most 200 characters."""

    @classmethod
    def of(cls, outcome: TrialResult) -> "SummaryRow":
        """Return the line that the summary will have of a result."""
        record = outcome.record
        values: dict[str, Any] = {
            name: getattr(outcome if in_result else record, name, None) for name, in_result in _SOURCES
        }
        reported = record.metrics.items() if record else ()
        return cls(**values, metrics={name: value for name, value in reported if value is not None})

    def metric(self, name: str) -> float | None:
        """Return a metric for ranking; None unless the trial is ok and reported it."""
        return self.metrics.get(name) if self.status is Status.OK else None


_SOURCES = [
    (each.name, hasattr(TrialResult, each.name)) for each in fields(SummaryRow) if each.name != "metrics"
]
"""The columns, and whether the result has them instead of its record."""


Result = TypeVar("Result", TrialResult, SummaryRow)


def with_all_metrics(
    results: Iterable[Result], metrics: Sequence[Metric]
) -> list[tuple[Result, tuple[float, ...]]]:
    """Return the results that have every metric for ranking, each with its values."""
    values = ((one, [one.metric(metric.name) for metric in metrics]) for one in results)
    known = ((one, tuple(each for each in listed if each is not None)) for one, listed in values)
    return [(one, listed) for one, listed in known if len(listed) == len(metrics)]


def pareto_front(
    results: Iterable[Result], metrics: Sequence[Metric]
) -> list[tuple[Result, tuple[float, ...]]]:
    """Return the results that no other beats in every metric, best in the first one first; none with one metric."""
    known = with_all_metrics(sorted(results, key=lambda one: one.trial), metrics)
    front = pareto_indices([values for _, values in known], metrics) if len(metrics) > 1 else ()
    return [known[place] for place in front]
