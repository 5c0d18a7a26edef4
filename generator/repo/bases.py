"""Where what this version gives to repositories lies: Kubernetes building blocks, workflows."""

from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def base_folder() -> Path:
    """Find `base/`: beside the package in a checkout, else inside the installed package."""
    beside = PACKAGE.parent / "base"
    return beside if beside.is_dir() else PACKAGE / "base"


def workflows_folder() -> Path:
    """Find what a repository on a code host begins with, laid out as it lies there."""
    return PACKAGE / "workflows"
