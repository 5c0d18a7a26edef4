"""From trials to the overlay of a sweep's next batch: its number, its shape, what it is made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from generator.commands import controller, lineage
from generator.errors import UsageError
from generator.render.bases import Bases
from generator.render.overlay import Overlay, overlay
from generator.repo.batches import ACTIVE, StoredBatch
from generator.structs.batch import Batch
from generator.structs.names import LAST_BATCH
from generator.structs.program import Program
from generator.structs.settings import Settings
from generator.structs.stopping import StopRule
from generator.structs.sweep import Shape, Sweep
from generator.structs.trial import Trial

READABLE_JOBS = 20
"""Up to here a reviewer reads single Jobs with pleasure, if all of them may run at once."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a batch asks for."""

    sweep: Sweep
    program: Program
    trials: tuple[Trial, ...]
    round: int | None = None
    engine: str | None = None
    parents: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By row, the id of the trial whose checkpoint this one goes on from."""
    stop: tuple[StopRule, ...] = ()
    """What ends a trial before its time."""


def rendered(asked: Asked, old: Sequence[StoredBatch], bases: Bases, settings: Settings) -> Overlay:
    """Render the batch that follows those of the sweep which stand.

    Raises UsageError after the last one, RepositoryError where a parent is in none of them.
    """
    sweep = asked.sweep
    last = max(old, key=lambda batch: batch.lock.number, default=None)
    if last and last.lock.number >= LAST_BATCH:
        raise UsageError(
            f"{sweep.name} has had {LAST_BATCH} batches", hint="begin a sweep under another name"
        )
    batch = Batch(
        sweep=sweep,
        number=last.lock.number + 1 if last else 1,
        parent=last.name if last else None,
        program=asked.program,
        trials=asked.trials,
        shape=shape_of(sweep, _largest(asked), queued=is_queued(settings, sweep)),
        round=asked.round,
        engine=asked.engine,
        parents=asked.parents,
        parent_folders=lineage.parent_folders(asked.parents, old),
        stop=asked.stop,
    )
    return overlay(batch, bases, settings)


def files_of(batch: Overlay, settings: Settings) -> dict[str, bytes]:
    """Give the files that ask for a batch, by path: its overlay, and what the controller must be told."""
    overlaid = {f"{ACTIVE}/{batch.name}/{path}": content for path, content in batch.tree}
    return {**overlaid, **controller.wanted(settings, batch.name)}


def _largest(asked: Asked) -> int:
    """Count the trials of a search's largest round: all its rounds have one shape, also a short last one."""
    search, trials = asked.sweep.search, len(asked.trials)
    return trials if search is None else max(trials, search.rounds.size * asked.sweep.replicates)


def shape_of(sweep: Sweep, trials: int, *, queued: bool = False) -> Shape:
    """Choose how trials become Kubernetes objects, unless the spec does; a queue holds Jobs back itself."""
    if sweep.run.shape is not None:
        return sweep.run.shape
    if sweep.search is not None and sweep.search.method.has_parents:
        return Shape.JOBS  # each trial mounts another folder
    if sweep.run.max_failed is not None:  # only an Indexed Job counts the failures of all its trials
        return Shape.INDEXED
    at_once = trials if queued else sweep.run.parallelism
    return Shape.JOBS if trials <= min(READABLE_JOBS, at_once) else Shape.INDEXED


def is_queued(settings: Settings, sweep: Sweep) -> bool:
    """Tell whether the sweep's pool is a queue."""
    pool = settings.pools.get(sweep.run.pool or "")
    return pool is not None and pool.queue is not None
