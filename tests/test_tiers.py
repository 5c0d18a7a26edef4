"""A run of the tests that ends in time: what would begin too late is left out before its fixtures begin."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

@pytest.fixture(scope="session")
def cluster():
    raise AssertionError("begins")

def test_needs_a_cluster(cluster): ...
def test_needs_nothing(): ...
"""


@pytest.mark.parametrize(("until", "outcome"), [("0", "2 skipped"), ("9e9", "1 passed, 1 error")])
def test_what_would_begin_too_late_is_left_out(tmp_path: Path, until: str, outcome: str) -> None:
    (tmp_path / "test_late.py").write_text(TESTS)
    plugins = ("-p", "tests.conftest", "-p", "no:cacheprovider", "-o", "addopts=", "-rs")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "--until", until, str(tmp_path / "test_late.py")],
        cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert outcome in run.stdout, run.stdout + run.stderr
    assert ("--until" in run.stdout) == (until == "0")
