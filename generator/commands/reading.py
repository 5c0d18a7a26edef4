"""`sweep collect-by-pod`: the ordinary collection, from a results volume that only pods can read."""

import tempfile
from pathlib import Path

from generator.commands.collect import Collected, Target, collect
from generator.commands.workspace import SETTINGS_FILE, Workspace
from generator.engine.cluster import reader_pod, submission
from generator.engine.cluster.kubectl import Kubectl, has_ended
from generator.errors import RepositoryError
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.structs.program import LOCAL_IMAGE
from generator.structs.settings import Settings
from generator.structs.sweep import Shape

POD = "sweep-reader"
"""One at a time: a second person is told by the cluster that it exists."""


def collect_by_pod(
    workspace: Workspace, target: Target, kubectl: Kubectl, *, image: str | None, patience: float
) -> tuple[Collected, ...]:
    """Read what the trials of the active batches left, and record what has ended.

    Raises ClusterError, RepositoryError where no image is known, and what collecting raises.
    """
    settings = workspace.settings
    standing = batches.in_commit(workspace.repository, workspace.standing(None))
    active = [batch for batch in standing if batch.is_active]
    if not active:
        return ()
    pod = reader_pod.manifest(
        POD, settings.namespace, settings.results.claim, _image(settings, image), _queue(settings)
    )
    with tempfile.TemporaryDirectory(prefix="sweep-results-") as scratch:
        # Looked at before the reading: what ends in between is recorded next time, none too early.
        ended = _ended(kubectl, settings.namespace, active)
        reader_pod.fetch(kubectl, pod, [batch.name for batch in active], Path(scratch), patience=patience)
        return collect(target, Path(scratch), ended)


def _ended(kubectl: Kubectl, namespace: str, active: list[StoredBatch]) -> set[str]:
    """Name the batches of which the cluster holds every Job, each of them ended."""
    found = set()
    for batch in active:
        jobs = kubectl.list("jobs.batch", namespace, f"{submission.BATCH_LABEL}={batch.name}")
        wanted = batch.lock.trials if batch.lock.shape is Shape.JOBS else 1
        if len(jobs) >= wanted and all(map(has_ended, jobs)):
            found.add(batch.name)
    return found


def _image(settings: Settings, asked: str | None) -> str:
    chosen = settings.image_of(asked)
    if chosen == LOCAL_IMAGE:
        raise RepositoryError(
            "the reader pod needs an image with sh, tar and sleep, and none is named",
            hint=f"name one among `images` of {SETTINGS_FILE} by --image, or set defaults.image",
        )
    return chosen


def _queue(settings: Settings) -> str | None:
    pools = [pool.queue for _, pool in sorted(settings.pools.items()) if pool.queue is not None]
    return pools[0] if pools else f"{settings.namespace}-user-queue"
