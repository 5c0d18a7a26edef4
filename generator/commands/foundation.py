"""What every repository of sweeps stands on: the frozen bases and the folders that never vanish."""

from pathlib import Path

from generator.errors import RepositoryError
from generator.render.overlay import Bases
from generator.repo import files
from generator.repo.bases import base_folder
from generator.repo.batches import ACTIVE, ARCHIVE

LAUNCHER = "launcher/v1/launch.py"
JOB = "jobs/v1/job.yaml"
FROZEN = ("trial/v1", "jobs/v1", "launcher/v1")


def bases(root: Path) -> Bases:
    """Read what overlays copy from `base/`: the repository's own, or this version's where it has none."""
    return Bases(launcher=_read(root, LAUNCHER), job=_read(root, JOB))


def _read(root: Path, name: str) -> bytes:
    files.refuse_links(root, Path("base", name))
    for folder in (root / "base", base_folder()):
        if (folder / name).is_file():
            with files.storage(folder / name):
                return (folder / name).read_bytes()
    raise RepositoryError(f"base/{name} is missing", hint="reinstall sweepledger")


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
