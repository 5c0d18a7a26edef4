"""The contents of a store: the finished trials of a sweep, with their learning curves. Values only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from sweepledger.errors import ToolError
from sweepledger.structs.domain import Domain
from sweepledger.structs.metric import Metric
from sweepledger.structs.record import CurvePoint, Status
from sweepledger.structs.values import Value, canonical_json

TRIAL_KEY = "sweepledger.trial"
"""The tag, or attribute, by which a store knows a trial again."""
VERSION_KEY = "sweepledger.results"
"""The tag, or attribute, of a sweep with the version of the results that its store has, all of them."""


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """A trial whose result never changes: ok, diverged or pruned."""

    id: str
    batch: str
    replicate: int
    seed: int
    status: Status
    parameters: Mapping[str, Value]
    metrics: Mapping[str, float]
    curves: Mapping[str, Sequence[CurvePoint]]
    """Metrics by step; None: not a finite number."""
    started: str
    finished: str
    """UTC, ISO 8601 with a final Z."""
    code: str
    ran: str

    @property
    def labels(self) -> dict[str, str]:
        """The origin of the trial, as text."""
        names = ("batch", "replicate", "seed", "status", "code", "ran")
        return {TRIAL_KEY: self.id, **{f"sweepledger.{name}": str(getattr(self, name)) for name in names}}


@dataclass(frozen=True, slots=True)
class SweepContents:
    """The results of one sweep at a commit."""

    sweep: str
    description: str
    commit: str
    """The commit that recorded them."""
    version: str
    """The git id of the folder with the results."""
    metrics: tuple[Metric, ...]
    """The objective first."""
    domains: Mapping[str, Domain]
    """The domain of each parameter; empty if the spec cannot be read."""
    trials: tuple[FinishedTrial, ...]
    """In the order of the summary, best or not."""
    best: str | None
    """Id of the best trial."""
    data: str | None
    """Name of the dataset."""
    unfinished: int
    """Number of trials without a final result, which no store gets."""


@dataclass(frozen=True, slots=True)
class StoreChange:
    """The state of a store after a write."""

    added: int
    """Number of trials that were written."""
    present: int
    """Number of trials that the store had already."""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreKind:
    """A kind of store. Each kind has a module that defines it as `STORE`, and a line in `registry.MODULES`."""

    name: str
    """As `sweep sync` takes it."""
    default: str
    """The place if none is named, relative to the current folder."""
    write: Callable[[SweepContents, str], StoreChange]
    """Writes what a place lacks: killed at any moment and repeated, each trial is there once. Raises ToolError,
    StorageError."""
    version: Callable[[str, str], str | None] = lambda _sweep, _place: None
    """Returns which results of a sweep a server has; None if it may lack some, and for files. Raises ToolError."""
    file: str = ""
    """The only file that is written in that folder, if it is one."""


def library(name: str, *, extra: str) -> Any:
    """Import the library of a store. Raises ToolError if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        need = f"this store is written by {package}"
        if error.name == package:
            raise ToolError.missing_library(need, extra=extra) from error
        raise ToolError(
            f"{need}, which cannot be imported: {error}", hint=f"`pip install 'sweepledger[{extra}]'`"
        ) from error


def plain_text(value: Value) -> str:
    """Return a value as text for stores without types: text is unchanged, everything else is JSON."""
    return value if isinstance(value, str) else canonical_json(value)


def seconds(text: str) -> float:
    """Return the time of a trial's start or end in seconds since 1970."""
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()
