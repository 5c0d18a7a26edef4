"""Datasets as folders on this machine: filled by their own command, verified before anything reads them."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from generator.errors import StorageError, ToolError
from generator.structs.settings import Dataset

CHUNK = 1 << 20
REPORT_SECONDS = 0.5

VERSION = "version:"
"""Begins the identity of data that nobody has digested: it is believed, since nothing can be compared."""


def is_verifiable(identity: str) -> bool:
    """Tell whether a folder can be held against a dataset's identity."""
    return not identity.startswith(VERSION)


def ready(dataset: Dataset, folder: Path, *, code: Path) -> Path:
    """Give the dataset's verified folder; fill it by the `prepare` command if it is missing.

    Of a dataset that is known by a version alone, nothing can be verified: whoever runs it must say so.

    `code` is the folder that the command runs in. Raises StorageError where the contents are not what the
    settings promise, ToolError if the command fails.
    """
    if not folder.is_dir() and not dataset.prepare:
        raise StorageError(
            f"dataset {dataset.name}: {folder} is missing",
            hint=f"put the files there, or give datasets.{dataset.name}.prepare a command that does",
        )
    try:
        if not folder.is_dir():
            _prepare(dataset, folder, code)
        found = folder_digest(folder) if is_verifiable(dataset.identity) else dataset.identity
    except OSError as error:
        raise StorageError(
            f"dataset {dataset.name}: {error.filename or folder}: {(error.strerror or str(error)).lower()}"
        ) from error
    if found != dataset.identity:
        raise StorageError(
            f"dataset {dataset.name}: {folder} holds other data: must be {dataset.identity}, found {found}",
            hint=f"remove the folder to have it made anew, or correct datasets.{dataset.name}.digest",
        )
    return folder


def _prepare(dataset: Dataset, folder: Path, code: Path) -> None:
    """Fill a folder beside the wanted one and move it there whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".tmp"))
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "HOME": str(staging.parent),
        "SWEEP_DATA": str(staging),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        done = subprocess.run(dataset.prepare, cwd=code, env=environment, capture_output=True, check=False)
    except OSError as error:
        raise ToolError(
            f"dataset {dataset.name}: {dataset.prepare[0]} cannot be run: {error.strerror}"
        ) from error
    if done.returncode:
        shutil.rmtree(staging, ignore_errors=True)
        raise ToolError.failed(
            dataset.prepare,
            code=done.returncode,
            stdout=done.stdout.decode(errors="replace"),
            stderr=done.stderr.decode(errors="replace"),
        )
    try:
        staging.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(staging)  # another run was faster; what it made is verified like this


def folder_digest(folder: Path) -> str:
    """Take `sha256:` over the sorted lines `<sha256>  <name>` of all files, as sha256sum would list them."""
    return digested(folder).digest


@dataclass(frozen=True, slots=True)
class Read:
    """How much has been read so far."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Digested:
    """A folder of data by content."""

    digest: str
    files: int
    bytes: int


def digested(folder: Path, *, progress: Callable[[Read], None] | None = None) -> Digested:
    """Take a folder's digest; `progress` hears of it about twice a second.

    Raises OSError, and StorageError for links and devices: what they lead to is not in the folder.
    """
    report = _Report(progress)
    lines = []
    for path in sorted(_files(folder), key=lambda path: path.relative_to(folder).as_posix()):
        name = path.relative_to(folder).as_posix()
        lines.append(f"{_file_digest(path, report)}  {name}\n")
        report.files += 1
    whole = hashlib.sha256("".join(lines).encode()).hexdigest()
    return Digested(f"sha256:{whole}", report.files, report.bytes)


@dataclass
class _Report:
    progress: Callable[[Read], None] | None
    files: int = 0
    bytes: int = 0
    at: float = 0.0

    def add(self, count: int) -> None:
        self.bytes += count
        if self.progress is not None and time.monotonic() - self.at >= REPORT_SECONDS:
            self.at = time.monotonic()
            self.progress(Read(self.files, self.bytes))


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise StorageError(
                f"{path}: must be a regular file, not a link or a device", hint="put the file itself there"
            )
        if "\n" in path.name or any("\ud800" <= letter <= "\udfff" for letter in path.name):
            raise StorageError(f"{str(path)!r}: must have a name in UTF-8 without line ends")
        if path.is_file():
            yield path


def _file_digest(path: Path, report: _Report) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            report.add(len(chunk))
    return digest.hexdigest()
