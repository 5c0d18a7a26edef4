"""The location of the files that sweepledger installs into repositories: `base/` and the workflows."""

from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def base_folder() -> Path:
    """Return the folder `base/`: that of the checkout, else that of the installed package."""
    checkout = PACKAGE.parent.parent / "base"
    return checkout if checkout.is_dir() else PACKAGE / "base"


def workflows_folder() -> Path:
    """Return the folder of workflows, laid out as a repository on a code host needs them."""
    return PACKAGE / "workflows"
