"""Compute the digest of a folder of data.

It is for `datasets.NAME.digest` in the settings.
"""

from collections.abc import Callable
from pathlib import Path

from sweepledger.cli import response
from sweepledger.cli.options import argument
from sweepledger.errors import StorageError, UsageError
from sweepledger.repo.datasets import FolderDigest, ReadProgress, digest_folder
from sweepledger.storage import storage_errors


def data(
    path: Path = argument("PATH", "Folder that trials will read."),
) -> response.Response:
    with response.open_console(stderr=True).status("reading", spinner="line") as status:
        result = folder_digest(
            path, progress=lambda done: status.update(f"read {done.bytes / 1e9:.1f} GB in {done.files} files")
        )
    counts = {"files": result.files, "bytes": result.bytes}
    return response.Response({"path": str(path), "digest": result.digest, **counts}, (result.digest,))


def folder_digest(folder: Path, *, progress: Callable[[ReadProgress], None] | None = None) -> FolderDigest:
    """Return the digest of a folder for the settings; `progress` is called about twice a second.

    Raises UsageError if the folder does not exist, StorageError for links, devices and unreadable files.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="name the folder that trials will read")
    with storage_errors(folder):
        result = digest_folder(folder, progress=progress)
    if not result.files:
        raise StorageError(f"{folder} contains no file", hint="a dataset has at least one")
    return result
