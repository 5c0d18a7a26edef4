"""Where the trials of a cluster leave their records and files: a volume, or a bucket.

Whatever moves results between pods and the collector implements this protocol.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sweepledger.errors import ToolError, UsageError
from sweepledger.repo.git import Repository
from sweepledger.repo.git.repository import TRUSTED_CLONE
from sweepledger.repo.image_registry import host_of, is_loopback
from sweepledger.repo.volume import VolumeResults
from sweepledger.structs.settings import BucketSettings, Cloud

if TYPE_CHECKING:
    from sweepledger.bucket.results import BucketResults


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
