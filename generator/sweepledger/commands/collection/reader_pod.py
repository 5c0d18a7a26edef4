"""The pod that reads a volume of the cluster for the user: claim, image, queue."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sweepledger.commands.repository.workspace import Workspace
from sweepledger.engine.cluster import helper_pods, submission
from sweepledger.engine.cluster.helper_pods import ReaderPod
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.errors import RepositoryError
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.program import LOCAL_IMAGE
from sweepledger.structs.settings import Controller, Settings

READER_POD = "sweep-reader"
"""Name of the pod. Only one can exist at a time; the cluster refuses a second."""


@dataclass(frozen=True)
class ReaderPodOptions:
    """How to start a reader pod."""

    workspace: Workspace
    kubectl: Kubectl
    image: str | None
    patience: float
    """Seconds to wait until a node runs it."""
    claim: str | None = None
    """The claim; None: that of the results."""

    @contextmanager
    def running(self) -> Iterator[ReaderPod]:
        """Start the pod for a block. Raises ClusterError, RepositoryError if no image is known."""
        settings = self.workspace.cluster_settings
        claim = self.claim or settings.results.claim
        manifest = helper_pods.reader_pod_manifest(
            READER_POD, settings.namespace, claim, reader_image(settings, self.image), reader_queue(settings)
        )
        with helper_pods.running_reader_pod(self.kubectl, manifest, patience=self.patience) as reader:
            yield reader

    def copy(self, batch: str, into: Path) -> None:
        """Copy the files of a batch's trials. Raises ClusterError, StorageError."""
        with self.running() as reader:
            reader.copy(batch, into)


def reader_image(settings: Settings, image: str | None) -> str:
    """Return the reader pod's image. Raises RepositoryError if no image is configured."""
    name = settings.image_of(image)
    if name == LOCAL_IMAGE:
        raise RepositoryError(
            "the reader pod needs an image with sh, find, tar and sleep, and none is configured",
            hint=f"name one among `images` of {SETTINGS_FILE} by --image, or set defaults.image",
        )
    return name


def reader_queue(settings: Settings) -> str | None:
    """Return the queue that admits the pod: that of the first pool with one, or of the project where a person submits.

    None: the cluster has no queues that the settings know of.
    """
    queues = [pool.queue for _, pool in sorted(settings.pools.items()) if pool.queue is not None]
    if queues:
        return queues[0]
    return submission.project_queue(settings.namespace) if settings.controller is Controller.SUBMIT else None
