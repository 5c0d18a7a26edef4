"""`sweep collect-by-pod`: the ordinary collection, from a results volume that only pods can read."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from generator.commands.collect import Target
from generator.commands.observing import Found, Witness, look, record
from generator.commands.reading_pod import POD, image_of, queue_of
from generator.commands.workspace import Workspace
from generator.engine.cluster import reader_pod
from generator.engine.cluster.kubectl import Kubectl
from generator.repo import batches


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
        POD, settings.namespace, settings.results.claim, image_of(settings, image), queue_of(settings)
    )
    with tempfile.TemporaryDirectory(prefix="sweep-results-") as scratch:
        # Looked at before the reading: what ends in between is recorded next time, none too early.
        seen = look(kubectl, settings.namespace, active)
        reader_pod.fetch(kubectl, pod, [batch.name for batch in active], Path(scratch), patience=patience)
        witness = Witness(kubectl, settings.namespace, seen, clock())
        return record(target, Path(scratch), witness, tip=tip)
