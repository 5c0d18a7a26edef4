"""What tests of the launcher ask for."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launcher.folders import TrialFolder

VERSIONS = Path.home() / ".pyenv" / "versions"


@pytest.fixture
def trial_folder(tmp_path: Path) -> Iterator[TrialFolder]:
    """Give the folders of a good trial; nothing is written before it runs, nothing runs on after the test."""
    folder = TrialFolder(tmp_path)
    yield folder
    folder.end()


@pytest.fixture(params=["3.8", "3.9", "3.10", "3.12", "3.13", "3.14", "3.15"])
def any_python(request: pytest.FixtureRequest) -> str:
    """Give another Python, or skip by name where this machine has none of that version."""
    version: str = request.param
    if version == "{}.{}".format(*sys.version_info):
        return sys.executable
    for found in sorted(VERSIONS.glob(f"{version}.*/bin/python{version}")):
        return str(found)
    if found_on_path := shutil.which(f"python{version}"):
        return found_on_path
    pytest.skip(f"skipped: no Python {version} on this machine")
