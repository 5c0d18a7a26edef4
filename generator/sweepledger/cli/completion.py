"""Shell completion: names of sweeps, batches, images and trials in the repository.

Completion is fast, and prints nothing if something is wrong.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

BATCH_FOLDERS = ("overlays/active", "overlays/archive")


def _completion(find: Callable[[Path], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completion of the names that `find` lists from the root of the repository; empty after an error."""

    def complete(incomplete: str) -> list[str]:
        try:
            here = Path.cwd()
            root = next(folder for folder in (here, *here.parents) if (folder / ".git").exists())
            return sorted({name for name in find(root) if name.startswith(incomplete)})
        except Exception:  # noqa: BLE001 - nothing may be printed between a prompt and its line
            return []

    return complete


@_completion
def sweeps(root: Path) -> Iterable[str]:
    """Return the names of sweeps that have a spec."""
    return (path.stem for path in (root / "sweeps").glob("*.yaml") if not path.name.startswith("."))


@_completion
def batches(root: Path) -> Iterable[str]:
    """Return the names of batches, active and archived."""
    return (lock.parent.name for folder in BATCH_FOLDERS for lock in (root / folder).glob("*/batch.json"))


@_completion
def images(root: Path) -> Iterable[str]:
    """Return the names of images in the settings."""
    from sweepledger.operations.repository.workspace import parse_settings
    from sweepledger.repo import inputs

    return parse_settings(inputs.read_settings(root), unpinned=True).trials.images


@_completion
def trials(root: Path) -> Iterable[str]:
    """Return the ids of recorded trials."""
    from sweepledger.formats import summary_csv
    from sweepledger.repo.files import read_file

    for path in (root / "results").glob(f"*/{summary_csv.SUMMARY_FILE}"):
        yield from (row.trial for row in summary_csv.read(read_file(path).decode()).rows)
