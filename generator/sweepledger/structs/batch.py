"""A batch: an immutable set of trials that is rendered, merged and run together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sweepledger.structs.early_stopping import StopRule
from sweepledger.structs.metric import Metric
from sweepledger.structs.program import Program
from sweepledger.structs.run_config import RunConfig, Shape
from sweepledger.structs.search_block import AdaptiveSearch
from sweepledger.structs.settings import ResultsStore
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial


@dataclass(frozen=True, slots=True)
class Batch:
    """The input of `render`. The batch's name is computed from the rendered files."""

    sweep: Sweep
    number: int
    parent: str | None
    """Name of the previous batch."""
    program: Program
    trials: tuple[Trial, ...]
    """In the order of the table: the index is the completion index."""
    shape: Shape
    round: int | None = None
    """Round number of a search, from 1; None for static methods and retries."""
    engine: str | None = None
    """Library that proposed the round, with its version."""
    parents: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By row, the id of the parent trial."""
    parent_folders: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By the same rows, the parent trial's folder: its batch and its row there."""
    stop: tuple[StopRule, ...] = ()
    """Rules of early stopping."""

    @property
    def keeps_checkpoints(self) -> bool:
        """Whether trials of later rounds may continue from its checkpoints, so that success deletes none."""
        return any(
            isinstance(block, AdaptiveSearch) and block.method.has_parents for block in self.sweep.blocks
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the table's parameter columns in the order of the spec, without the replicate."""
        return self.sweep.columns

    @property
    def run(self) -> RunConfig:
        """How the batch's trials run."""
        return self.sweep.run


@dataclass(frozen=True, slots=True)
class BatchLock:
    """The content of batch.yaml: everything that later steps need without the spec."""

    name: str
    digest: str
    sweep: str
    number: int
    parent: str | None
    spec_path: str
    spec_digest: str
    shape: Shape
    trials: int
    metric: Metric
    program: Program
    seed_base: int
    retries: int
    generator: str
    bases: tuple[str, ...]
    """Folders below `base/` that the batch builds on; they are frozen as long as the batch exists."""
    files: Mapping[str, str]
    max_disruptions: int | None = None
    """How many disruptions of a trial the launcher tolerates; None: launcher v1, which does not count them."""
    other_metrics: tuple[Metric, ...] = ()
    """Metrics of a multi-objective search after the first; only their names and goals are stored."""
    pool: str | None = None
    """Pool in the settings on whose nodes the trials run; None: no pool."""
    round: int | None = None
    """Round number of a search, from 1; None for static methods and retries."""
    method: str | None = None
    """Method that proposed the round."""
    engine: str | None = None
    """Library that proposed the round, with its version."""
    ahead: int = 1
    """Largest number of active batches of its search; 1 in locks of static methods and retries."""
    parents: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By row, the id of the parent trial."""
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The table's columns after the trial, with their types; empty in older locks."""
    blobs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Git's ids of the files that the archive may leave out, because history has them; empty in older locks."""
    store: ResultsStore = ResultsStore.VOLUME
    """Through what the records of its trials travel."""

    @property
    def record_version(self) -> int:
        """The version of its launcher, and of the records and the files of records that follow from it."""
        return 1 if self.max_disruptions is None else 2

    def as_data(self) -> dict[str, Any]:
        """Return the lock as data, in the order of batch.yaml."""
        return {
            "version": 1,
            "name": self.name,
            "digest": self.digest,
            "sweep": self.sweep,
            "number": self.number,
            "parent": self.parent,
            "spec": {"path": self.spec_path, "digest": self.spec_digest},
            "shape": str(self.shape),
            "trials": self.trials,
            "metric": {
                "name": self.metric.name,
                "goal": str(self.metric.goal),
                **self.metric.reported,
            },
            # Optional keys are absent by default, so that locks of earlier versions stay equal.
            **({"other_metrics": self._others} if self.other_metrics else {}),
            "program": self.program.as_data(),
            "seed_base": self.seed_base,
            "retries": self.retries,
            **({} if self.max_disruptions is None else {"max_disruptions": self.max_disruptions}),
            **({} if self.pool is None else {"pool": self.pool}),
            **({} if self.store is ResultsStore.VOLUME else {"store": str(self.store)}),
            **({} if self.round is None else self._drawn),
            **(
                {"parents": {str(row): self.parents[row] for row in sorted(self.parents)}}
                if self.parents
                else {}
            ),
            "generator": self.generator,
            "bases": list(self.bases),
            **({"columns": dict(self.columns)} if self.columns else {}),
            "files": dict(sorted(self.files.items())),
            **({"blobs": dict(sorted(self.blobs.items()))} if self.blobs else {}),
        }

    @property
    def _drawn(self) -> dict[str, Any]:
        overlap = {} if self.ahead == 1 else {"ahead": self.ahead}
        return {"round": self.round, "method": self.method, "engine": self.engine, **overlap}

    @property
    def _others(self) -> dict[str, str]:
        return {metric.name: str(metric.goal) for metric in self.other_metrics}
