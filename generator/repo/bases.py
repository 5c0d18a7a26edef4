"""Where the Kubernetes building blocks of this version lie."""

from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def base_folder() -> Path:
    """Find `base/`: beside the package in a checkout, else inside the installed package."""
    beside = PACKAGE.parent / "base"
    return beside if beside.is_dir() else PACKAGE / "base"
