"""The same commit gives the same bytes: on every Python, under every hash seed and locale."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import captured
from tests.pythons import find_python

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "every_trial.py"
EXAMPLES = ROOT / "tests/specs/valid"


def digests(python: str, **environment: str) -> dict[str, str]:
    """Let a Python render every example from nothing."""
    made = captured(
        [python, str(PROGRAM), str(EXAMPLES)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT / 'generator'}:{ROOT}", **environment},
        check=True,
    )
    document: dict[str, str] = json.loads(made.stdout)
    return document


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    results = digests(sys.executable, PYTHONHASHSEED="0", LC_ALL="C.UTF-8")
    assert results.keys() == {path.stem for path in EXAMPLES.glob("*.yaml")}
    return results


@pytest.fixture(scope="module")
def another_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give the newest other Python, with the locked libraries; skip by name where there is none."""
    for version in ("3.14", "3.13", "3.12"):
        if version == "{}.{}".format(*sys.version_info):
            continue
        if text := find_python(version):
            folder = tmp_path_factory.mktemp(f"python{version}")
            subprocess.run([text, "-m", "venv", str(folder)], check=True)
            python = str(folder / "bin/python")
            quiet = ["--quiet", "--disable-pip-version-check", "--require-hashes"]
            subprocess.run(
                [python, "-m", "pip", "install", *quiet, "-r", str(ROOT / "locks/sweep.lock")], check=True
            )
            return python
    pytest.skip("skipped: no other Python from 3.12 on this machine")


# The default tier generates one sweep with two seeds and locales (tests/operations/test_generate.py), and compares the
# golden trees with another seed in each run.
@pytest.mark.full_suite("every hash seed and locale")
@pytest.mark.parametrize("language", ["C", "de_DE.UTF-8"])
@pytest.mark.parametrize("seed", ["1", "2", "3", "random"])
def test_no_hash_seed_and_no_locale_changes_a_byte(here: dict[str, str], seed: str, language: str) -> None:
    assert digests(sys.executable, PYTHONHASHSEED=seed, LC_ALL=language, PYTHONUTF8="0") == here


def test_no_version_of_python_changes_a_byte(here: dict[str, str], another_python: str) -> None:
    assert digests(another_python, PYTHONHASHSEED="1", LC_ALL="C") == here
