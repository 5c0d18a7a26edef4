"""Datasets as folders on this machine: filled by their own command, and verified before use."""

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sweepledger import process, storage
from sweepledger.errors import StorageError, ToolError
from sweepledger.process import LimitExceededError, Limits
from sweepledger.structs.program import AND
from sweepledger.structs.settings import Dataset, SeveralDatasets
from sweepledger.structs.values import listing_digest

CHUNK_BYTES = 1 << 20
REPORT_SECONDS = 0.5
PREPARE_SECONDS = 24 * 3600.0
PREPARE_OUTPUT_BYTES = 64 << 20

DIGITS = 16
"""Of the digest in the name of a folder of links."""
VERSION_PREFIX = "version:"
"""Prefix of an identity that is not a digest; the content of such a dataset cannot be verified."""


def is_verifiable(identity: str) -> bool:
    """Return whether a folder can be compared with the identity of a dataset."""
    return not identity.startswith(VERSION_PREFIX)


def _verify(dataset: Dataset, folder: Path) -> None:
    """Raise StorageError if a folder differs from a dataset's digest, or from the content that its version used."""
    if not is_verifiable(dataset.identity):
        _refuse_other_data(dataset, folder)
        return
    try:
        identity, _ = digest_folder(folder)
    except OSError as error:
        raise storage.storage_error(f"dataset {dataset.name}: {error.filename or folder}", error) from error
    if identity != dataset.identity:
        raise StorageError(
            f"dataset {dataset.name}: {folder} contains other data: must be {dataset.identity}, got {identity}",
            hint=f"remove the folder to have it prepared again, or correct datasets.{dataset.name}.digest",
        )


def _version_note(folder: Path) -> Path:
    """Return the file that notes the version that last used a folder, and the folder's state then."""
    return folder.with_name(f".{folder.name}.version")


def _refuse_other_data(dataset: Dataset, folder: Path) -> None:
    """Raise StorageError if another version used this content of the folder, or this version used another content.

    Otherwise note this version next to the folder.
    """
    note = _version_note(folder)
    with storage.storage_errors(folder):
        # Numbers of files, which a file system may give anew with each mount, say nothing from one run to the next.
        entries = ((name, entry) for name, _, entry in storage.walk(folder, follows=True) if entry)
        states = ((name, entry.stat(follow_symlinks=Path(entry.path).exists())) for name, entry in entries)
        lines = sorted(f"{name}\0{state.st_size} {state.st_mtime_ns}" for name, state in states)
    state = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    with storage.storage_errors(note):
        former, _, seen = note.read_text().partition("\n") if note.is_file() else ("", "", "")
    if former == dataset.identity and seen != state:
        back = (
            "remove the folder to have it prepared again" if dataset.prepare else "put the former files there"
        )
        raise StorageError(
            f"dataset {dataset.name}: files in {folder} were changed since a trial used them as {former}",
            hint=f"{back}, or give the data another datasets.{dataset.name}.version",
        )
    if former not in {"", dataset.identity} and seen == state:
        raise StorageError(
            f"dataset {dataset.name}: {folder} must have the data of {dataset.identity}, and has not changed "
            f"since it was used as {former}",
            hint="remove the folder to have it prepared again"
            if dataset.prepare
            else "put the data of this version there",
        )
    storage.write_file(note, f"{dataset.identity}\n{state}".encode())


def _provide(dataset: Dataset, folder: Path, code: Path) -> None:
    """Run the `prepare` command of a dataset if its folder is missing. Raises StorageError, ToolError."""
    if folder.is_dir():
        return
    if not dataset.prepare:
        raise StorageError(
            f"dataset {dataset.name}: {folder} is missing",
            hint=f"put the files there, or set datasets.{dataset.name}.prepare to a command that creates them",
        )
    try:
        _version_note(folder).unlink(missing_ok=True)  # of what was there before
        _prepare(dataset, folder, code)
    except OSError as error:
        raise storage.storage_error(f"dataset {dataset.name}: {error.filename or folder}", error) from error


def verified_data(data: Dataset | SeveralDatasets, cache: Path, *, code: Path) -> storage.WatchedFolder:
    """Return the verified data of a sweep; several datasets are links in a folder.

    `cache` has the folder of each dataset by its name. If one is missing, its `prepare` command is run in the folder
    `code`. A dataset with a version instead of a digest is not verified, which the caller must report, but is what this
    version used before, and not what another version used. The returned state is that before the verification.

    Raises StorageError for other data, or if something writes to it meanwhile, and ToolError if the command fails.
    """
    parts = (data,) if isinstance(data, Dataset) else data.parts
    for part in parts:
        _provide(part, cache / part.name, code)
    folder = cache / data.name if isinstance(data, Dataset) else _folder_of_links(data, cache)
    state = storage.data_state(folder)
    for part in parts:
        _verify(part, cache / part.name)
    if storage.data_state(folder) != state:
        raise StorageError(
            f"dataset {data.name}: {folder} changed while it was verified",
            hint="stop what writes to the folder, and try again",
        )
    return storage.WatchedFolder(folder, state)


def _folder_of_links(data: SeveralDatasets, cache: Path) -> Path:
    """Return a separate folder for each selection, so that no batch changes the data of another."""
    folder = cache / f"{AND}{hashlib.sha256(data.name.encode()).hexdigest()[:DIGITS]}"
    with storage.storage_errors(folder):
        folder.mkdir(exist_ok=True)
        for part in data.parts:
            with suppress(FileExistsError):
                (folder / part.name).symlink_to(Path("..", part.name), target_is_directory=True)
    return folder


def _prepare(dataset: Dataset, folder: Path, code: Path) -> None:
    """Run the `prepare` command on a temporary folder next to the final folder, and rename it."""
    limits = Limits(PREPARE_SECONDS, PREPARE_OUTPUT_BYTES)
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".tmp"))
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "HOME": str(staging.parent),
        "SWEEP_DATA": str(staging),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        try:
            result = process.run(dataset.prepare, limits, env=environment, cwd=code)
        except LimitExceededError as error:
            raise ToolError(f"dataset {dataset.name}: `{' '.join(dataset.prepare)}` {error}") from error
        except OSError as error:
            raise ToolError(
                f"dataset {dataset.name}: {dataset.prepare[0]} cannot be run: {error.strerror}"
            ) from error
        if result.code:
            stdout, stderr = (text.decode(errors="replace") for text in (result.stdout, result.stderr))
            raise ToolError.failed(dataset.prepare, code=result.code, stdout=stdout, stderr=stderr)
        try:
            staging.rename(folder)
        except OSError:
            # If another command was faster, its folder is verified like this one.
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@dataclass(slots=True)
class ReadFiles:
    """The number of files and bytes that were read."""

    files: int = 0
    bytes: int = 0


def digest_folder(
    folder: Path, *, progress: Callable[[ReadFiles], None] | None = None
) -> tuple[str, ReadFiles]:
    """Return the digest of a folder and the amount that was read; call `progress` about twice a second.

    It is `sha256:` and the digest of the sorted lines `<sha256>  <name>` of all files, as sha256sum prints them.
    Raises OSError, and StorageError for links and devices, whose content is not in the folder.
    """
    read, reported = ReadFiles(), 0.0
    digests = {}
    for path in sorted(_files(folder)):  # all names are checked before any content is read
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
                read.bytes += len(chunk)
                if progress is not None and time.monotonic() - reported >= REPORT_SECONDS:
                    reported = time.monotonic()
                    progress(read)
        digests[path.relative_to(folder).as_posix()] = digest.hexdigest()
        read.files += 1
    return listing_digest(digests), read


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise StorageError(
                f"{path}: must be a regular file, not a link or a device",
                hint="replace it with the file itself",
            )
        if "\n" in path.name or any("\ud800" <= letter <= "\udfff" for letter in path.name):
            raise StorageError(f"{str(path)!r}: must have a name in UTF-8 without line breaks")
        if path.is_file():
            yield path
