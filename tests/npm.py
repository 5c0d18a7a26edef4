"""npm, for what is nowhere else: it runs no scripts of packages, and ends where the registry does not answer."""

import shutil
import subprocess
from pathlib import Path

SECONDS = 600
"""For a download of megabytes, on a machine that does other work, too."""


class NpmError(Exception):
    """npm is missing, has failed, or takes too long; says which."""


def run(folder: Path, *arguments: str) -> str:
    """Run npm in a folder; return what it prints. Raises NpmError."""
    if shutil.which("npm") is None:
        raise NpmError("npm not found")
    argv = ["npm", arguments[0], "--silent", "--ignore-scripts", "--no-audit", "--no-fund", *arguments[1:]]
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise NpmError(f"npm has not ended after {SECONDS} s") from None
    if done.returncode:
        raise NpmError(f"npm failed: {' '.join(done.stderr.split())[-200:]}")
    return done.stdout
