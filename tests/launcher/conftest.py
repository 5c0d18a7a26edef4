"""Fixtures of the launcher's tests."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launcher.folders import TrialFolder
from tests.pythons import require_python


@pytest.fixture
def trial_folder(tmp_path: Path) -> Iterator[TrialFolder]:
    """The folders of a valid trial; they are written when it runs, and its processes end with the test."""
    folder = TrialFolder(tmp_path)
    yield folder
    folder.end()


@pytest.fixture(params=["/var/tmp", "/dev/shm"])  # noqa: S108 - new folders below them
def local_folder(request: pytest.FixtureRequest) -> Iterator[TrialFolder]:
    """The folders of a valid trial on a disk, and in memory, where a write through a mapping may not be noted."""
    with tempfile.TemporaryDirectory(dir=request.param) as root:
        folder = TrialFolder(Path(root))
        yield folder
        folder.end()


THIS_PYTHON = "{}.{}".format(*sys.version_info)
PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
"""The versions that images of users may have."""


@pytest.fixture(
    params=[
        THIS_PYTHON,
        *(
            pytest.param(version, marks=pytest.mark.full_suite("other Python versions"))
            for version in PYTHONS
            if version != THIS_PYTHON
        ),
    ]
)
def any_python(request: pytest.FixtureRequest) -> str:
    """The Python of each version that images of users may have."""
    return require_python(request.param)
