import sys
from pathlib import Path

import pytest

from tests.pythons import find_python


@pytest.fixture(autouse=True)
def _no_pyenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", str(tmp_path))


def write_python(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    "script",
    ['echo "pyenv: python3.99: command not found" >&2; exit 127', "echo 3.98"],
    ids=["does not run", "is another version"],
)
def test_a_shim_that_does_not_run_its_version_is_no_python(script: str, tmp_path: Path) -> None:
    write_python(tmp_path / "python3.99", script)

    assert find_python("3.99") is None


def test_a_python_on_path_and_one_of_pyenv_are_found(tmp_path: Path) -> None:
    write_python(tmp_path / "python3.99", "echo 3.99")
    assert find_python("3.99") == str(tmp_path / "python3.99")

    installed = tmp_path / "pyenv/versions/3.99.1/bin/python3.99"
    write_python(installed, "echo 3.99")
    assert find_python("3.99") == str(installed)


def test_this_python_is_preferred_for_its_own_version() -> None:
    assert find_python("{}.{}".format(*sys.version_info)) == sys.executable
