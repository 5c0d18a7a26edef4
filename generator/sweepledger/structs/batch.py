"""A batch: an immutable set of trials that is rendered, merged and run together."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from sweepledger.structs.early_stopping import StopRule
from sweepledger.structs.metric import Metric
from sweepledger.structs.program import Program
from sweepledger.structs.run_config import Infrastructure, Pack, RunConfig, Shape
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
    """In the order of the table: the index is the completion index, unless pods run several."""
    shape: Shape
    round: int | None = None
    """Round number of a search, from 1; None for static methods and retries."""
    engine: str | None = None
    """Library that proposed the round, with its version."""
    unfitted: str | None = None
    """Why the method's model could not propose the round, which was drawn at random; None: it could."""
    parents: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By row, the id of the parent trial."""
    parent_folders: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By the same rows, the parent trial's folder: its batch and its row there."""
    stop: tuple[StopRule, ...] = ()
    """Rules of early stopping."""
    cluster: str | None = None
    """The cluster that runs it; None: the only one."""
    repairs: bool = False
    """Whether it runs failed trials of its sweep with a later program: no further batch takes that program from it."""
    after_infrastructure: bool = False
    """Whether it requests trials again because infrastructure ended them."""

    @property
    def keeps_checkpoints(self) -> bool:
        """Whether trials of later rounds may continue from its checkpoints, so that success deletes none."""
        return self.sweep.search is not None and self.sweep.search.continues_trials

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
    max_disruptions: int
    """How many disruptions of a trial the launcher tolerates."""
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
    unfitted: str | None = None
    """Why the method's model could not propose the round, which was drawn at random; None: it could."""
    ahead: int = 1
    """Largest number of active batches of its search; 1 in locks of static methods and retries."""
    parents: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By row, the id of the parent trial."""
    restarts: bool = False
    """Whether trials with a parent begin anew: they read none of its checkpoints."""
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The table's columns after the trial, with their types."""
    blobs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Git's ids of the files that the archive may leave out, because history has them."""
    store: ResultsStore = ResultsStore.VOLUME
    """Through what the records of its trials travel."""
    cluster: str | None = None
    """The cluster that runs it; None: the only one."""
    pack: Pack | None = None
    """How many trials a pod runs; None: one."""
    infrastructure: Infrastructure | None = None
    """How often its trials are requested again after a failure of infrastructure; None: never."""
    repairs: bool = False
    """Whether it runs failed trials of its sweep with a later program: no further batch takes that program from it."""
    after_infrastructure: bool = False
    """Whether it requests its trials again because infrastructure ended them."""

    @property
    def trials_per_pod(self) -> int:
        """How many trials run at the same time in one pod."""
        return 1 if self.pack is None else self.pack.at_once

    @property
    def pods(self) -> int:
        """How many completion indexes its Job has, in shape `indexed`."""
        return self.trials if self.pack is None else self.pack.pods(self.trials)

    def pod(self, row: int) -> int:
        """Return the completion index of the pod that runs a row, in shape `indexed`."""
        return row if self.pack is None else self.pack.pod(row)

    def rows(self, pod: int) -> range:
        """Return the rows that the pod of a completion index runs; none beyond the table."""
        if self.pack is None:
            return range(min(pod, self.trials), min(pod + 1, self.trials))
        return self.pack.rows(pod, self.trials)

    def attempt(self, pod: str, row: int) -> str:
        """Return the id of a pod's attempt at a row."""
        return pod if self.pack is None else f"{pod}-{row}"

    def place(self, row: int) -> str:
        """Return the path of a trial's folder below its batch's: a pod of several trials has one around theirs."""
        return str(row) if self.pack is None else f"{self.pack.pod(row)}/{row}"

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
            **({"other_metrics": self._others} if self.other_metrics else {}),
            "program": self.program.as_data(),
            "seed_base": self.seed_base,
            "retries": self.retries,
            "max_disruptions": self.max_disruptions,
            **({} if self.infrastructure is None else {"infrastructure": self.infrastructure.as_data()}),
            **({"after_infrastructure": True} if self.after_infrastructure else {}),
            **({"repairs": True} if self.repairs else {}),
            **({} if self.pool is None else {"pool": self.pool}),
            **({} if self.cluster is None else {"cluster": self.cluster}),
            **({} if self.pack is None else {"pack": asdict(self.pack)}),
            **({} if self.store is ResultsStore.VOLUME else {"store": str(self.store)}),
            **({} if self.round is None else self._drawn),
            **(
                {"parents": {str(row): self.parents[row] for row in sorted(self.parents)}}
                if self.parents
                else {}
            ),
            **({"restarts": True} if self.restarts else {}),
            "generator": self.generator,
            "bases": list(self.bases),
            "columns": dict(self.columns),
            "files": dict(sorted(self.files.items())),
            "blobs": dict(sorted(self.blobs.items())),
        }

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of its sweep, the objective first."""
        return (self.metric, *self.other_metrics)

    @property
    def _drawn(self) -> dict[str, Any]:
        return {
            "round": self.round,
            "method": self.method,
            "engine": self.engine,
            **({} if self.unfitted is None else {"unfitted": self.unfitted}),
            **({} if self.ahead == 1 else {"ahead": self.ahead}),
        }

    @property
    def _others(self) -> dict[str, str]:
        return {metric.name: str(metric.goal) for metric in self.other_metrics}
