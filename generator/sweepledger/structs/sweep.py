"""A sweep: a checked spec as a value."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from sweepledger.model.keys import EMPTY, MANY, EntryName, Key, some
from sweepledger.problems import Severity
from sweepledger.structs.early_stopping import StopPolicy
from sweepledger.structs.metric import Metric
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.record import RETRYABLE_STATUSES, Status
from sweepledger.structs.run_config import RunConfig, RunningState
from sweepledger.structs.search_block import AdaptiveSearch, ConfigurationList, Design, Rounds
from sweepledger.structs.settings import SweepLimits
from sweepledger.structs.space import MAX_TRIALS


class Script(Struct, frozen=True):
    """A file that a spec names; whether it exists is checked when the code is read."""

    path: str
    """Relative to the folder that `program` is relative to."""
    severity: Severity
    """Severity of its absence: the file of `program` must exist, while an argument may only look like a path."""
    is_inside: bool = True
    """False: the command names it next to the code path, where a trial has no files."""


BATCH_EXAMPLE = "mnist-grid-b1-3f9a1c2e"
BatchName = Annotated[str, Meta(description="Name of a batch.", examples=[BATCH_EXAMPLE])]
NAME_OR_MAPPING = Meta(extra_json_schema={"type": ["string", "object"]})


class Retry(Struct, frozen=True):
    """Name of a batch, or a mapping with the statuses that count."""

    batch: BatchName
    statuses: Annotated[
        frozenset[Annotated[Status, Meta(extra_json_schema={"enum": sorted(RETRYABLE_STATUSES)})]],
        Key("only"),
        *(some(len(RETRYABLE_STATUSES)), Meta(examples=[["failed"]])),
    ] = RETRYABLE_STATUSES
    """Only trials with these statuses. Default: all three."""


class Budget(Struct, frozen=True):
    """Upper bound of the sweep's cost; a larger sweep is refused before anything runs."""

    max_trials: Annotated[int, Meta(ge=1, le=MAX_TRIALS, examples=[200])] | None = None
    """Trials, replicates included."""
    max_gpu_hours: Annotated[float, Meta(gt=0, examples=[500])] | None = None
    """GPU hours: trials * (retries + 1) * timeout * GPUs."""


class LockedKeys(Struct, frozen=True, kw_only=True):
    """Keys of a spec that the lock of each of its batches has, too."""

    run: Annotated[RunConfig, Meta(examples=[{"parallelism": 4, "timeout": "10m"}])] = RunConfig()
    """How trials run. A change here applies to the next batch and does not create new trials, except for image, code
    and data."""


class SweepKeys(LockedKeys, frozen=True, kw_only=True):
    """Keys of a spec that its sweep has, too."""

    replicates: Annotated[int, Meta(ge=1, le=1000, examples=[3])] = 1
    """Number of times that each configuration runs, with the seeds `run.seed_base`, the next one, and so on."""
    budget: Annotated[Budget, Meta(min_length=1)] = Budget()
    cancel: Annotated[tuple[BatchName, ...], MANY] = ()
    """Cancelled batches of this sweep; `sweep cancel` writes this key."""
    running: Annotated[
        Mapping[str, Annotated[RunningState, Meta(min_length=1)]], EntryName(BATCH_EXAMPLE), MANY
    ] = EMPTY
    """How merged batches of this sweep run now; `sweep cluster pause`, `sweep cluster resume` and `sweep cluster scale`
    write this key."""
    retry: Annotated[
        tuple[
            Annotated[Retry, NAME_OR_MAPPING, Meta(examples=[BATCH_EXAMPLE, {"batch": BATCH_EXAMPLE}])], ...
        ],
        MANY,
    ] = ()
    """Batches of this sweep whose unfinished trials are requested again; `sweep retry` writes this key."""


class Sweep(SweepKeys, frozen=True, kw_only=True):
    """A checked spec."""

    name: str
    description: str
    metric: Metric
    design: Design
    command: tuple[str, ...]
    """With the path of the program in place of its macro; other macros as in the spec."""
    path: str
    """Path of the spec, relative to the repository."""
    digest: str
    """Digest of the spec and of the list file next to it, `sha256:…`."""
    limits: SweepLimits = SweepLimits()
    """The limits of the repository, which apply in addition to the sweep's budget."""
    pool: Pool | None = None
    """The pool of the settings that it runs in."""
    scripts: tuple[Script, ...] = ()
    other_metrics: tuple[Metric, ...] = ()
    """Further metrics of a multi-objective search, reported like the first."""
    early_stop: StopPolicy | None = None
    static_rounds: Rounds | None = None
    """Rounds in which the configurations of a static method run; None: all at once."""

    def is_paused(self, batch: str) -> bool:
        """Return whether no trial of a merged batch may run."""
        return batch in self.running and self.running[batch].paused

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics; the first is the objective."""
        return (self.metric, *self.other_metrics)

    @property
    def search(self) -> AdaptiveSearch | None:
        """The adaptive search, if the sweep is one."""
        return self.design if isinstance(self.design, AdaptiveSearch) else None

    @property
    def rounds(self) -> Rounds | None:
        """The rounds in which it runs; None if all of its trials are requested at once."""
        return self.static_rounds if self.search is None else self.search.rounds

    @property
    def method(self) -> str:
        """The name of its method."""
        return str(self.design.method)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names that configurations can have, in the order of their first appearance in the spec."""
        space = self.design.space
        listed = self.design.names if isinstance(self.design, ConfigurationList | AdaptiveSearch) else ()
        names = [*(parameter.name for parameter in space.parameters), *listed]
        return tuple(dict.fromkeys([*names, *(value.name for value in space.derived)]))
