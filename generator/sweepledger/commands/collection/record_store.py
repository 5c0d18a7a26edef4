"""Where the trials of a cluster leave their records and files: a volume, or a bucket.

Whatever moves results between pods and the collector implements this protocol.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sweepledger.errors import ToolError, UsageError
from sweepledger.repo.volume import VolumeResults
from sweepledger.structs.settings import BucketSettings

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


def bucket_results(bucket: BucketSettings) -> "BucketResults":
    """Return the results in a bucket, with the credentials of this process.

    Raises ToolError, UsageError, StorageError.
    """
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
