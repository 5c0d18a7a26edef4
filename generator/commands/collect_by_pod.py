"""`sweep collect-by-pod`: the ordinary collection, from a results volume that only pods can read."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from generator.commands.collect import Target
from generator.commands.observing import Found, Witness, look, record
from generator.commands.workspace import SETTINGS_FILE, Workspace
from generator.engine.cluster import reader_pod, submission
from generator.engine.cluster.kubectl import Kubectl
from generator.errors import RepositoryError
from generator.repo import batches
from generator.structs.program import LOCAL_IMAGE
from generator.structs.settings import Settings

POD = "sweep-reader"
"""One at a time: a second person is told by the cluster that it exists."""


def collect_by_pod(
    workspace: Workspace,
    target: Target,
    kubectl: Kubectl,
    *,
    image: str | None,
    patience: float,
    clock: Callable[[], float] = time.time,
) -> Found:
    """Read what the trials of the active batches left, and record what has ended.

    Raises ClusterError, RepositoryError where no image is known, and what collecting raises.
    """
    settings = workspace.settings
    tip = workspace.standing(None)
    active = [batch for batch in batches.in_commit(workspace.repository, tip) if batch.is_active]
    if not active:
        return Found()
    pod = reader_pod.manifest(
        POD, settings.namespace, settings.results.claim, _image(settings, image), _queue(settings)
    )
    with tempfile.TemporaryDirectory(prefix="sweep-results-") as scratch:
        # Looked at before the reading: what ends in between is recorded next time, none too early.
        seen = look(kubectl, settings.namespace, active)
        reader_pod.fetch(kubectl, pod, [batch.name for batch in active], Path(scratch), patience=patience)
        witness = Witness(kubectl, settings.namespace, seen, clock())
        return record(target, Path(scratch), witness, tip=tip)


def _image(settings: Settings, asked: str | None) -> str:
    chosen = settings.image_of(asked)
    if chosen == LOCAL_IMAGE:
        raise RepositoryError(
            "the reader pod needs an image with sh, find, tar and sleep, and none is named",
            hint=f"name one among `images` of {SETTINGS_FILE} by --image, or set defaults.image",
        )
    return chosen


def _queue(settings: Settings) -> str | None:
    pools = [pool.queue for _, pool in sorted(settings.pools.items()) if pool.queue is not None]
    return pools[0] if pools else submission.project_queue(settings.namespace)
