"""A batch: an immutable set of trials that is rendered, merged and run together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from generator.structs.adaptive import Search
from generator.structs.program import Program
from generator.structs.stopping import StopRule
from generator.structs.sweep import Metric, Run, Shape, Sweep
from generator.structs.trial import Trial


@dataclass(frozen=True, slots=True)
class Batch:
    """What `render` turns into an overlay. Its name follows from the rendering."""

    sweep: Sweep
    number: int
    parent: str | None
    """The batch before it, by name."""
    program: Program
    trials: tuple[Trial, ...]
    """In the order of the table: the position is the completion index."""
    shape: Shape
    round: int | None = None
    """Of a search, from 1; None for other sweeps, and for trials that are asked for once more."""
    engine: str | None = None
    """What drew the round, with its version."""
    parents: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By row, the id of the trial whose checkpoint this one goes on from."""
    parent_folders: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By the same rows, that trial's own folder: its batch and its row there."""
    stop: tuple[StopRule, ...] = ()
    """What ends a trial before its time."""

    @property
    def keeps_checkpoints(self) -> bool:
        """Tell whether trials of later rounds may go on from its own: then success deletes none."""
        return any(isinstance(block, Search) and block.method.has_parents for block in self.sweep.blocks)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the table's parameter columns, in the order of the spec; the replicate is none of them."""
        return self.sweep.columns

    @property
    def run(self) -> Run:
        """How the batch's trials run."""
        return self.sweep.run


@dataclass(frozen=True, slots=True)
class Lock:
    """What batch.yaml says of a batch that stands in git: all that later steps need without the spec."""

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
    """The folders below `base/` that it was made from or builds on: frozen for as long as it is kept."""
    files: Mapping[str, str]
    other_metrics: tuple[Metric, ...] = ()
    """Of a search by several, those after the first; their names and goals are what counts."""
    pool: str | None = None
    """The pool of the settings whose nodes its trials ask for; None where it asks for none of them."""
    round: int | None = None
    """Of a search, from 1; None for other sweeps, and for trials that were asked for once more."""
    method: str | None = None
    """Which method drew the round."""
    engine: str | None = None
    """What drew the round, with its version."""
    parents: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By row, the id of the trial whose checkpoint this one goes on from."""

    def as_data(self) -> dict[str, Any]:
        """Give the lock in the order in which batch.yaml shows it."""
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
            # Only where there are several.
            **({"other_metrics": self._others} if self.other_metrics else {}),
            "program": self.program.as_data(),
            "seed_base": self.seed_base,
            "retries": self.retries,
            # Only where there is one: most batches are placed nowhere in particular.
            **({} if self.pool is None else {"pool": self.pool}),
            **({} if self.round is None else self._drawn),
            **(
                {"parents": {str(row): self.parents[row] for row in sorted(self.parents)}}
                if self.parents
                else {}
            ),
            "generator": self.generator,
            "bases": list(self.bases),
            "files": dict(sorted(self.files.items())),
        }

    @property
    def _drawn(self) -> dict[str, Any]:
        return {"round": self.round, "method": self.method, "engine": self.engine}

    @property
    def _others(self) -> dict[str, str]:
        return {metric.name: str(metric.goal) for metric in self.other_metrics}
