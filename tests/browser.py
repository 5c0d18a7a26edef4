"""A real Chromium, driven by Playwright, and axe-core: fetched once into an ignored folder, or missing by name.

    python -m tests.browser        fetch both; exit code 1 if one is unavailable, and its tests are then skipped

Chromium is Debian's, or named by $BROWSER. Playwright comes with `locks/browser.lock`.
"""

import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import npm
from tests.cluster import packages

ROOT = Path(__file__).parents[1]
AXE = ROOT / ".tools" / "browser" / "axe.min.js"
NPM = "axe-core@4.14.1"
AXE_SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"

# The page may not reach anything, and neither may the browser itself.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class NoBrowserError(Exception):
    """Chromium, Playwright or axe-core is missing; says which and how to get it."""


@contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium, and end it. Raises NoBrowserError."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415
    except ImportError as error:
        raise NoBrowserError("playwright is not installed: make .venv/stamps/browser") from error
    path = shutil.which(os.environ.get("BROWSER", "chromium"))
    if path is None:
        raise NoBrowserError("chromium is not on the PATH: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield chromium
        finally:
            chromium.close()


def axe_source() -> str:
    """Return the script of axe-core. Raises NoBrowserError."""
    if not AXE.is_file():
        raise NoBrowserError("axe-core is not here: make .venv/stamps/browser")
    return AXE.read_text(encoding="utf-8")


def fetch_axe() -> None:
    """Fetch axe-core without running its scripts, and verify it. Raises NoBrowserError."""
    if AXE.is_file():
        return
    AXE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=AXE.parent) as folder:
        try:
            npm.run(Path(folder), "pack", NPM)
        except npm.NpmError as error:
            raise NoBrowserError(str(error)) from error
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            archive.extractall(folder, filter="data")
        source = Path(folder) / "package" / "axe.min.js"
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        if digest != AXE_SHA256:
            raise NoBrowserError(f"{NPM} has another axe.min.js: {digest}")
        source.replace(AXE)


def install_chromium() -> None:
    """Install Debian's Chromium, as root. Raises NoBrowserError."""
    if shutil.which(os.environ.get("BROWSER", "chromium")) is not None:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoBrowserError("root and apt-get are needed: apt-get install chromium")
    try:
        packages.install(("chromium",))
    except packages.PackagesError as error:
        raise NoBrowserError(str(error)) from error


def main() -> int:
    """Fetch axe-core and Chromium, and report what is missing."""
    missing = 0
    for what, step in (("axe-core", fetch_axe), ("Chromium", install_chromium)):
        try:
            step()
        except NoBrowserError as error:
            sys.stderr.write(f"missing: {what} ({error}); its tests will be skipped\n")
            missing = 1
    return missing


if __name__ == "__main__":
    sys.exit(main())
