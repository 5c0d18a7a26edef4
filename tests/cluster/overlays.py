"""The golden overlays, laid out as a repository in which they build."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "tests/golden/cases").glob("*/expected/*/"))


def laid_out(folder: Path, overlay: Path) -> Path:
    """Copy an overlay and the bases below a folder; give where the overlay lies."""
    shutil.copytree(ROOT / "base", folder / "base", dirs_exist_ok=True)
    target = folder / "overlays/active" / overlay.name
    shutil.copytree(overlay, target)
    return target
