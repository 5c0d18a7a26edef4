"""Records and files in a bucket, which any machine with its credentials reads."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sweepledger.errors import ToolError, UsageError
from sweepledger.repo.git import Repository
from sweepledger.repo.git.repository import TRUSTED_CLONE
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.settings import BucketSettings, Cloud, ResultsSettings

if TYPE_CHECKING:
    from sweepledger.bucket.results import BucketResults


def open_store(results: ResultsSettings, repository: Repository, volume: Path) -> "BucketResults":  # noqa: ARG001
    """Return the results in the bucket of a repository's settings. Raises as `bucket_results` does."""
    if results.bucket is None:
        raise UsageError(
            f"its records are in a bucket, and {SETTINGS_FILE} has none",
            hint="let `results` name the bucket again until the batch is recorded",
        )
    return bucket_results(results.bucket, repository)


def bucket_results(bucket: BucketSettings, repository: Repository) -> "BucketResults":
    """Return the results in the bucket that the settings name, read with the credentials of this process.

    Raises ToolError, UsageError, StorageError, and RepositoryError for an endpoint that the user does not trust.
    """
    endpoint = bucket.endpoint
    is_chosen = any(value == endpoint and name in os.environ for name, value in bucket.variables.items())
    if endpoint is not None and not is_chosen:
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
