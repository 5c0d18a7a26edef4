"""What a shell completes: names that lie in the repository. Fast, and silent whatever is wrong."""

from collections.abc import Callable, Iterable
from pathlib import Path

BATCH_FOLDERS = ("overlays/active", "overlays/archive")


def _silent(find: Callable[[Path], Iterable[str]]) -> Callable[[str], list[str]]:
    """Look from the repository's root; a shell has no place for an error."""

    def complete(incomplete: str) -> list[str]:
        try:
            here = Path.cwd()
            root = next(folder for folder in (here, *here.parents) if (folder / ".git").exists())
            return sorted({name for name in find(root) if name.startswith(incomplete)})
        except Exception:  # noqa: BLE001 - nothing may be printed between a prompt and its line
            return []

    return complete


@_silent
def sweeps(root: Path) -> Iterable[str]:
    """Name the sweeps that have a spec."""
    return (path.stem for path in (root / "sweeps").glob("*.yaml") if not path.name.startswith("."))


@_silent
def batches(root: Path) -> Iterable[str]:
    """Name the batches, active and archived."""
    return (lock.parent.name for folder in BATCH_FOLDERS for lock in (root / folder).glob("*/batch.yaml"))


@_silent
def images(root: Path) -> Iterable[str]:
    """Name the images of the settings."""
    from generator.commands.workspace import SETTINGS_FILE, parse_settings

    return parse_settings(root / SETTINGS_FILE, unpinned=True).images


@_silent
def trials(root: Path) -> Iterable[str]:
    """Name the recorded trials."""
    for summary in (root / "results").glob("*/summary.csv"):
        with summary.open(encoding="utf-8") as lines:
            header = next(lines).rstrip("\n").split(",")
            place = header.index("trial")
            yield from (line.split(",")[place] for line in lines if line.count(",") >= place)
