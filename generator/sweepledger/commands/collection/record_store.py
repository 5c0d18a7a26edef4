"""Where the trials of a cluster leave their records and files: a volume, or a bucket; and the pod that reads a volume.

Whatever moves results between pods and the collector implements this protocol.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sweepledger.commands.repository.workspace import Workspace
from sweepledger.engine.cluster import helper_pods, workloads
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.errors import RepositoryError, ToolError, UsageError
from sweepledger.repo.git import Repository
from sweepledger.repo.git.repository import TRUSTED_CLONE
from sweepledger.repo.volume import VolumeResults
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.program import LOCAL_IMAGE
from sweepledger.structs.settings import BucketSettings, Cloud, Controller, TrialSettings

if TYPE_CHECKING:
    from sweepledger.bucket.results import BucketResults
    from sweepledger.repo.volume import VolumeRoot

    Shelf = VolumeRoot | BucketResults
    """What has the folders of batches, which expire."""


class RecordStore(Protocol):
    """The results of all batches. Its content is untrusted; every method raises StorageError."""

    @property
    def counts_alone(self) -> bool:
        """Whether a record can count of which no pod is left."""

    def records(self, batch: str, index: int, place: str) -> Iterator[bytes | None]:
        """Yield the records of a trial, whose folder has a place, as `volume.attempt_records` does."""

    def unconfirmed(self, batch: str) -> Mapping[tuple[int, str], str]:
        """Return the SHA-256 of those records read so far that count only if the cluster confirms it.

        By trial and attempt.
        """

    def has_begun(self, batch: str) -> bool:
        """Return whether a trial of the batch has left anything."""

    def last_change(self, batch: str) -> float | None:
        """Return when something was last written for a batch, in seconds since 1970; None without anything."""


def record_store(results: Path | RecordStore) -> RecordStore:
    """Return a store; a path stands for the volume that is mounted there."""
    return VolumeResults(results) if isinstance(results, Path) else results


def bucket_results(bucket: BucketSettings, repository: Repository) -> "BucketResults":
    """Return the results in a bucket of a repository's settings, with the credentials of this process.

    Raises ToolError, UsageError, StorageError, and RepositoryError for an endpoint that the user does not trust.
    """
    endpoint = bucket.endpoint
    if endpoint is not None and not bucket.endpoint_variables & os.environ.keys():
        from sweepledger.repo.image_registry import host_of, is_loopback  # noqa: PLC0415 - with SSL and email

        repository.require_trusted(endpoint)
        is_clear = endpoint.startswith("http:") and not is_loopback(host_of(endpoint))
        if is_clear and bucket.cloud is Cloud.AZURE and TRUSTED_CLONE not in os.environ:
            raise UsageError(
                f"{endpoint} would get a credential in the clear", hint="let the server answer at https://"
            )
    try:
        from sweepledger.bucket.objects import Bucket  # noqa: PLC0415 - an extra: only who has a bucket needs it
        from sweepledger.bucket.results import BucketResults  # noqa: PLC0415
        from sweepledger.bucket.trial_sidecar import read_key  # noqa: PLC0415
    except ImportError as error:
        raise ToolError.missing_library(f"{bucket.url} needs obstore", extra="bucket") from error
    secrets, key = os.environ.get("SWEEP_STORE_SECRETS"), os.environ.get("SWEEP_STORE_KEY_FILE")
    try:
        seals = read_key(key) if key else None
    except ValueError as error:
        raise UsageError(str(error)) from error
    place = Path(secrets) if secrets else None
    return BucketResults(Bucket(bucket.url, secrets=place, variables=bucket.variables), seals)


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
    def running(self) -> Iterator[helper_pods.ReaderPod]:
        """Start the pod for a block. Raises ClusterError, RepositoryError if no image is known."""
        settings = self.workspace.cluster_settings
        image = settings.trials.image_of(self.image)
        if image == LOCAL_IMAGE:
            raise RepositoryError(
                "the reader pod needs an image with sh, find, tar and sleep, and none is configured",
                hint=f"name one among `images` of {SETTINGS_FILE} by --image, or set defaults.image",
            )
        manifest = helper_pods.reader_pod_manifest(
            settings.trials.namespace,
            self.claim or settings.results.claim,
            image,
            reader_queue(settings.trials, settings.platform.controller),
        )
        with helper_pods.running_reader_pod(self.kubectl, manifest, patience=self.patience) as reader:
            yield reader

    def copy(self, batch: str, into: Path) -> None:
        """Copy the files of a batch's trials. Raises ClusterError, StorageError."""
        with self.running() as reader:
            reader.copy(batch, into)


def reader_queue(trials: TrialSettings, controller: Controller) -> str | None:
    """Return the queue that admits the pod: that of the first pool with one, or of the project where a person submits.

    None: the cluster has no queues that the settings know of.
    """
    queues = [pool.queue for _, pool in sorted(trials.pools.items()) if pool.queue is not None]
    if queues:
        return queues[0]
    return workloads.project_queue(trials.namespace) if controller is Controller.SUBMIT else None
