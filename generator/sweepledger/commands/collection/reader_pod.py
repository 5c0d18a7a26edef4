"""A pod that reads a volume of the cluster for a person: which claim, which image, which queue."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from generator.commands.workspace import SETTINGS_FILE, Workspace
from generator.engine.cluster import reader_pod, submission
from generator.engine.cluster.kubectl import Kubectl
from generator.engine.cluster.reader_pod import Reader
from generator.errors import RepositoryError
from generator.structs.program import LOCAL_IMAGE
from generator.structs.settings import Settings

POD = "sweep-reader"
"""One at a time: a second person is told by the cluster that it exists."""


@dataclass(frozen=True)
class ReadingPod:
    """How to start one."""

    workspace: Workspace
    kubectl: Kubectl
    image: str | None
    patience: float
    """Seconds for a node to run it."""
    claim: str | None = None
    """None: that of the results."""

    @contextmanager
    def running(self) -> Iterator[Reader]:
        """Start the pod for a block. Raises ClusterError, RepositoryError where no image is known."""
        settings = self.workspace.settings
        claim = self.claim or settings.results.claim
        made = reader_pod.manifest(
            POD, settings.namespace, claim, image_of(settings, self.image), queue_of(settings)
        )
        with reader_pod.running(self.kubectl, made, patience=self.patience) as reader:
            yield reader

    def copy(self, batch: str, into: Path) -> None:
        """Copy what the trials of a batch left. Raises ClusterError, StorageError."""
        with self.running() as reader:
            reader.copy(batch, into)


def image_of(settings: Settings, asked: str | None) -> str:
    """Choose the reader's image. Raises RepositoryError where none is named."""
    chosen = settings.image_of(asked)
    if chosen == LOCAL_IMAGE:
        raise RepositoryError(
            "the reader pod needs an image with sh, find, tar and sleep, and none is named",
            hint=f"name one among `images` of {SETTINGS_FILE} by --image, or set defaults.image",
        )
    return chosen


def queue_of(settings: Settings) -> str | None:
    """Choose the queue that lets it in."""
    pools = [pool.queue for _, pool in sorted(settings.pools.items()) if pool.queue is not None]
    return pools[0] if pools else submission.project_queue(settings.namespace)
