"""What every repository of sweeps stands on: the frozen bases and the folders that never vanish."""

from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType

from generator.render.bases import Bases
from generator.repo import files
from generator.repo.bases import base_folder
from generator.repo.batches import ACTIVE, ARCHIVE
from generator.repo.git import Repository

BASE = "base/"


def bases(root: Path) -> Bases:
    """Read what overlays copy from `base/`: the repository's own, or this version's where it has none."""
    files.refuse_links(root, "base")
    theirs, ours = files.read_sources(root / "base"), files.read_sources(base_folder())
    return Bases(MappingProxyType({**ours.files, **theirs.files}))


def bases_at(repository: Repository, commit: str) -> Bases:
    """Read the same of a commit, whatever lies in the work tree."""
    theirs = {path.removeprefix(BASE): held for path, held in repository.read(commit, BASE).items()}
    return Bases(MappingProxyType({**files.read_sources(base_folder()).files, **theirs}))


def lacking(root: Path, names: Iterable[str]) -> dict[str, bytes]:
    """Give the files of those bases that the repository does not have yet, by their path in it."""
    return {
        f"base/{name}/{path}": content
        for name in sorted(names)
        if not (root / "base" / name).exists()
        for path, content in files.read_sources(base_folder() / name)
    }


def lay(root: Path, names: Iterable[str]) -> None:
    """Add what is missing of the foundation: the watched folders, and what batches to come are made from.

    Nothing that is there is touched. Raises StorageError for links.
    """
    wanted = sorted(names)
    files.refuse_links(root, ACTIVE, ARCHIVE, *(f"base/{name}" for name in wanted))
    for place in (ACTIVE, ARCHIVE):
        # Controllers prune only while the folder they watch exists.
        keep = root / place / ".gitkeep"
        if not keep.exists():
            files.write_file(keep, b"")
    for name in wanted:
        target = root / "base" / name
        if not target.exists():
            files.write_folder(target, files.read_sources(base_folder() / name))
