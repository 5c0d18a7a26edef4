"""A batch: an immutable set of trials that is rendered, merged and run together."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sweepledger.model.keys import EMPTY
from sweepledger.model.text_forms import CLUSTER_NAME
from sweepledger.structs.early_stopping import StopRule
from sweepledger.structs.metric import Metric
from sweepledger.structs.program import Program
from sweepledger.structs.record import PrefixedDigest
from sweepledger.structs.run_config import RunConfig, Shape
from sweepledger.structs.settings import DEFAULT_STORE, ResultsStore
from sweepledger.structs.sweep import LockedKeys, Sweep
from sweepledger.structs.trial import Trial


class Batch(Struct, frozen=True):
    """The input of `render`. The batch's name is computed from the rendered files."""

    sweep: Sweep
    program: Program
    trials: tuple[Trial, ...]
    """In the order of the table: the index is the completion index, unless pods run several."""
    number: int = 1
    parent: str | None = None
    """Name of the previous batch."""
    shape: Shape = Shape.INDEXED
    round: int | None = None
    """Round number of a search, from 1; None for static methods and retries."""
    engine: str | None = None
    """Library that proposed the round, with its version."""
    unfitted: str | None = None
    """Why the method's model could not propose the round, which was drawn at random; None: it could."""
    parents: Mapping[int, str] = EMPTY
    """By row, the id of the parent trial."""
    parent_folders: Mapping[int, str] = EMPTY
    """By the same rows, the parent trial's folder: its batch and its row there."""
    stop: tuple[StopRule, ...] = ()
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
    def run(self) -> RunConfig:
        """How the batch's trials run."""
        return self.sweep.run


class SpecFile(Struct, frozen=True):
    """The spec that a batch was made from."""

    path: str
    digest: str


Count = Annotated[int, Meta(ge=0)]
FromOne = Annotated[int, Meta(ge=1)]
BlobId = Annotated[str, Meta(pattern="^[0-9a-f]{40}$", max_length=40)]


class BatchLock(LockedKeys, frozen=True, kw_only=True):
    """The content of `batch.json`: everything that later steps need without the spec.

    A field that is called like one of `Batch` is the same.
    """

    version: Literal[1] = 1
    generated: str
    """By what it was made, and from what, for those who read it."""
    name: str
    digest: str
    """Of the overlay with its name and this digest blank."""
    sweep: str
    """Its name."""
    number: Count
    parent: str | None
    spec: SpecFile
    shape: Shape
    trials: Count
    """Their number."""
    metric: Metric
    other_metrics: tuple[Metric, ...] = ()
    """Metrics of a multi-objective search after the first; only their names and goals are stored."""
    program: Program
    run: RunConfig
    """How its trials run, as the spec said when it was made."""
    cluster: Annotated[str, Meta(pattern=rf"^{CLUSTER_NAME.pattern}\Z")] | None = None
    store: ResultsStore = DEFAULT_STORE
    """Through what the records of its trials travel."""
    round: FromOne | None = None
    method: str | None = None
    """Method that proposed the round."""
    engine: str | None = None
    unfitted: str | None = None
    ahead: FromOne = 1
    """Largest number of active batches of its search; 1 in locks of static methods and retries."""
    parents: Mapping[Count, str] = EMPTY
    restarts: bool = False
    """Whether trials with a parent begin anew: they read none of its checkpoints."""
    after_infrastructure: bool = False
    repairs: bool = False
    generator: str
    """Version that made it."""
    bases: tuple[str, ...]
    """Folders below `base/` that the batch builds on; they are frozen as long as the batch exists."""
    columns: Mapping[str, str]
    """The table's columns after the trial, with their types."""
    files: Mapping[str, PrefixedDigest]
    blobs: Mapping[str, BlobId]
    """Git's ids of the files that the archive may leave out, because history has them."""

    @property
    def has_manifests(self) -> bool:
        """Whether it can run in a cluster; else laptops run it, by lock, launch file and table."""
        return "kustomization.yaml" in self.blobs

    @property
    def needed_bases(self) -> tuple[str, ...]:
        """The bases that the repository must have."""
        return self.bases if self.has_manifests else ()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of its sweep, the objective first."""
        return (self.metric, *self.other_metrics)

    @property
    def pods(self) -> int:
        """How many completion indexes its Job has, in shape `indexed`."""
        return self.run.packed.pods(self.trials)

    def rows(self, pod: int) -> range:
        """Return the rows that the pod of a completion index runs; none beyond the table."""
        return self.run.packed.rows(pod, self.trials)

    def attempt(self, pod: str, row: int) -> str:
        """Return the id of a pod's attempt at a row."""
        return pod if self.run.pack is None else f"{pod}-{row}"

    def place(self, row: int) -> str:
        """Return the path of a trial's folder below its batch's: a pod of several trials has one around theirs."""
        return str(row) if self.run.pack is None else f"{self.run.pack.pod(row)}/{row}"
