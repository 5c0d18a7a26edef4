"""Compute the digest of a folder of data.

It is for `datasets.NAME.digest` in the settings.
"""

from dataclasses import asdict
from pathlib import Path

from sweepledger.cli import response
from sweepledger.cli.options import argument
from sweepledger.errors import StorageError, UsageError
from sweepledger.repo.datasets import digest_folder
from sweepledger.storage import storage_errors


def data(
    path: Path = argument("PATH", "Folder that trials will read."),
) -> response.Response:
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder", hint="name the folder that trials will read")
    with response.open_console(stderr=True).status("reading", spinner="line") as status, storage_errors(path):
        digest, read = digest_folder(
            path, progress=lambda done: status.update(f"read {done.bytes / 1e9:.1f} GB in {done.files} files")
        )
    if not read.files:
        raise StorageError(f"{path} contains no file", hint="a dataset has at least one")
    return response.Response({"path": path, "digest": digest, **asdict(read)}, (digest,))
