"""The settings and specs in the work tree, and the files from which a platform is made or with which it is compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sweepledger.errors import RepositoryError
from sweepledger.formats import bootstrap_yaml
from sweepledger.repo import base_files, batches, files
from sweepledger.repo.git import Checkout, Repository
from sweepledger.structs.names import SETTINGS_FILE, SPECS
from sweepledger.structs.run_config import Shape

EMPTY_SETTINGS = b"version: 1\n"


def read_settings(root: Path) -> bytes:
    """Return the settings of the work tree; empty ones if there is no file. Raises StorageError."""
    path = root / SETTINGS_FILE
    return files.read_input(path) if path.exists() else EMPTY_SETTINGS


def list_specs(repository: Repository) -> tuple[Path, ...]:
    """Return the specs of the work tree.

    Raises StorageError if a link leads to them, RepositoryError if a sparse check-out lacks them.
    """
    files.refuse_links(repository.folder, SPECS)
    if Checkout(repository, SPECS).hidden:
        raise RepositoryError(
            f"{SPECS}/ is left out by the sparse check-out", hint=f"`git sparse-checkout add {SPECS}`"
        )
    return tuple(sorted((repository.folder / SPECS).glob("*.y*ml"), key=lambda path: path.name))


def read_bootstrap(root: Path) -> bootstrap_yaml.Bootstrap | None:
    """Return the record of the last bootstrap. Raises RepositoryError."""
    path = root / bootstrap_yaml.BOOTSTRAP_FILE
    if not path.exists():
        return None
    try:
        return bootstrap_yaml.read(files.read_input(path))
    except ValueError as error:
        raise RepositoryError(
            f"{bootstrap_yaml.BOOTSTRAP_FILE}: {error}",
            hint="remove it and run `sweep cluster bootstrap` with --force",
        ) from error


@dataclass(frozen=True)
class PlatformFiles:
    """The input files of a platform, and its existing files, by path in the repository."""

    bases: Mapping[str, bytes]
    existing: Mapping[str, bytes]

    @classmethod
    def read(cls, root: Path, folder: str) -> "PlatformFiles":
        """Read the files, the existing ones below a folder. Raises StorageError, also for links."""
        existing = {f"{folder}/{path}": content for path, content in files.read_folder(root / folder)}
        return cls(base_files.read_bases(root), existing)


@dataclass(frozen=True)
class PlatformInputs:
    """All inputs of a platform in the work tree."""

    settings: bytes
    specs: tuple[Path, ...]
    recorded: bootstrap_yaml.Bootstrap | None
    active: tuple[batches.StoredBatch, ...]
    shapes: frozenset[Shape]
    """Those of the active batches."""
    platform: PlatformFiles

    @classmethod
    def read(cls, repository: Repository, folder: str) -> "PlatformInputs":
        """Read the inputs, the platform's files below a folder. Raises RepositoryError, StorageError."""
        root = repository.folder
        files.refuse_links(root, folder, SETTINGS_FILE)
        stored = [batch for batch in batches.in_work_tree(root) if batch.is_active]
        return cls(
            read_settings(root),
            list_specs(repository),
            read_bootstrap(root),
            batches.readable(stored),
            frozenset(batch.lock.shape for batch in stored),
            PlatformFiles.read(root, folder),
        )
