"""What every repository of sweeps stands on: the frozen bases and the folders that never vanish."""

from pathlib import Path
from types import MappingProxyType

from generator.render.overlay import Bases
from generator.repo import files
from generator.repo.bases import base_folder
from generator.repo.batches import ACTIVE, ARCHIVE

FROZEN = ("trial/v1", "jobs/v1", "launcher/v1")


def bases(root: Path) -> Bases:
    """Read what overlays copy from `base/`: the repository's own, or this version's where it has none."""
    files.refuse_links(root, "base")
    theirs, ours = files.read_folder(root / "base"), files.read_folder(base_folder())
    return Bases(MappingProxyType({**ours.files, **theirs.files}))


def lay(root: Path) -> None:
    """Add what is missing of the foundation; touch nothing that is there. Raises StorageError for links."""
    files.refuse_links(root, ACTIVE, ARCHIVE, *(f"base/{name}" for name in FROZEN))
    for place in (ACTIVE, ARCHIVE):
        # Controllers prune only while the folder they watch exists.
        keep = root / place / ".gitkeep"
        if not keep.exists():
            files.write_file(keep, b"")
    for name in FROZEN:
        target = root / "base" / name
        if not target.exists():
            files.write_folder(target, files.read_folder(base_folder() / name))
