"""Datasets as folders on this machine: filled by their own command, verified before anything reads them."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from generator.errors import StorageError, ToolError
from generator.structs.settings import Dataset

CHUNK = 1 << 20


def ready(dataset: Dataset, folder: Path, *, code: Path) -> Path:
    """Give the dataset's verified folder; fill it by the `prepare` command if it is missing.

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
        found = folder_digest(folder)
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
    lines = [
        f"{_file_digest(path)}  {path.relative_to(folder).as_posix()}\n"
        for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix())
        if path.is_file()
    ]
    return "sha256:" + hashlib.sha256("".join(lines).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
