"""The Pythons of this machine, for tests that must pass in every version."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

VERSION_SCRIPT = "import sys; print('%d.%d' % sys.version_info[:2])"


def find_python(version: str) -> str | None:
    """Return a Python of a version, such as "3.12", that runs on this machine; None if there is none."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    installed = sorted(root.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)
    candidates = (sys.executable, *map(str, installed), shutil.which(f"python{version}"))
    return next((path for path in candidates if path and _runs(path, version)), None)


def require_python(version: str) -> str:
    """Return a Python of a version, or skip the test by name if there is none."""
    return find_python(version) or pytest.skip(f"skipped: no Python {version} on this machine")


@cache
def _runs(path: str, version: str) -> bool:
    """Return whether a program is this Python: a pyenv shim exists for versions that it cannot run."""
    try:
        done = subprocess.run(
            [path, "-c", VERSION_SCRIPT], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == version
