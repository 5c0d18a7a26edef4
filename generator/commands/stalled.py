"""Active batches that nothing will ever end: their objects are gone, and no record says how they ended."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from generator.engine.cluster.observed import Held
from generator.repo.batches import StoredBatch
from generator.repo.git import Repository, is_there_since
from generator.structs.kinds import RUNNERS
from generator.structs.settings import Controller
from generator.structs.sweep import Shape

FRESH_SECONDS = 600
"""How long a controller may take to apply what was merged before it looks stuck: three polls of Argo CD."""

WAYS_OUT: Mapping[Controller, str] = {
    Controller.ARGOCD: "sync its Application in Argo CD, which makes nothing anew by itself",
    Controller.FLUX: "Flux makes it anew within the hour, unless its Kustomization says why it cannot",
    Controller.SUBMIT: "`sweep submit {batch}`, with `--again` if its Jobs were deleted",
    Controller.NONE: "apply its overlay again",
}


@dataclass(frozen=True)
class Stalled:
    """A batch that waits for what the cluster does not have."""

    batch: str
    sweep: str
    kind: str
    """Of the objects that run its trials."""
    objects: int
    """That are there; all of them have ended."""
    wanted: int

    @property
    def lacks(self) -> str:
        """Say what the cluster does not have."""
        return f"the cluster has {self.objects} of its {self.wanted} {self.kind}(s)"

    @property
    def says(self) -> str:
        """Say what is the matter, to who has read the records."""
        return f"{self.lacks}, and the records do not say how all trials ended"

    def hint(self, controller: Controller) -> str:
        """Name the ways out."""
        way = WAYS_OUT[controller].format(batch=self.batch)
        return f"{way}; or `sweep cancel {self.sweep} --batch {self.batch}`"


def wanted(batch: StoredBatch) -> int:
    """Say how many objects run a batch's trials."""
    return 1 if batch.lock.shape is Shape.INDEXED else batch.lock.trials


def stalled(
    repository: Repository,
    tip: str | None,
    held: Iterable[tuple[StoredBatch, Held]],
    *,
    results: Path | None,
    now: float,
) -> tuple[Stalled, ...]:
    """Choose the active batches, of which nobody knows an end, that are not merely about to be applied.

    What left a trace on the results volume was applied once.
    """
    return tuple(
        Stalled(
            batch.name, batch.lock.sweep, RUNNERS[batch.lock.shape].kind, len(found.runners), wanted(batch)
        )
        for batch, found in held
        if not found.is_running
        and len(found.runners) < wanted(batch)
        and (_has_begun(results, batch) or _is_old(repository, tip, batch, now))
    )


def _has_begun(results: Path | None, batch: StoredBatch) -> bool:
    folder = None if results is None else results / batch.name
    return folder is not None and folder.is_dir() and any(folder.iterdir())


def _is_old(repository: Repository, tip: str | None, batch: StoredBatch, now: float) -> bool:
    came = None if tip is None else is_there_since(repository, tip, batch.folder)
    return came is not None and came < now - FRESH_SECONDS
