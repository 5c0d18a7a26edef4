"""What a user installs: the generator alone, with the Kubernetes building blocks inside."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.command_line import captured

ROOT = Path(__file__).parents[2]
MEGABYTES = 250
USES = """
import sweepledger
repository = sweepledger.open()
assert [sweep.name for sweep in repository.sweeps] == ["lr"]
assert len(repository.sweep("lr").trials) == 0
try:
    repository.sweep("lr").trials.to_pandas()
except sweepledger.GeneratorError as error:
    print(error.hint)
"""


@pytest.mark.full_suite("installs the package and its libraries from a package index")
def test_in_an_empty_environment_the_wheel_is_light_and_works(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    captured(build, cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    home, folder = tmp_path / "venv", tmp_path / "repository"
    venv.create(home, with_pip=True)
    subprocess.run(
        [home / "bin/python", "-m", "pip", "install", "-q", "--no-compile", str(wheel)], check=True
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*command: str) -> str:
        done = captured([home / "bin" / command[0], *command[1:]], cwd=folder, env=environment, check=True)
        return done.stdout

    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    assert "sweep" in run("sweep", "--help")
    run("sweep", "new", "lr")
    subprocess.run(["git", "-C", folder, "add", "--all"], check=True)
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", "-C", folder, *identity, "commit", "-qm", "Ask for lr"], check=True)
    assert "pip install 'sweepledger[pandas]'" in run("python", "-c", USES)
    size = sum(path.lstat().st_size for path in home.rglob("*") if path.is_file() and not path.is_symlink())
    assert size < MEGABYTES * 1_000_000


def test_the_wheel_carries_the_generator_and_base_and_nothing_else(tmp_path: Path) -> None:
    captured(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)], cwd=ROOT, check=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")

    assert {name.partition("/")[0] for name in names} == {"sweepledger", "sweepledger-0.1.0.dist-info"}
    assert {"sweepledger/base/launcher/v1/launch.py", "sweepledger/base/trial/v1/job.yaml"} <= set(names)
    assert {
        "sweepledger/schemas/sweep.schema.json",
        "sweepledger/workflows/.github/workflows/check.yaml",
    } <= set(names)
    assert not [name for name in names if "__pycache__" in name]

    code = (
        "from sweepledger.repo.files import base_folder as base\n"
        "print((base() / 'jobs/v1/job.yaml').is_file(), base())"
    )
    done = captured(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
        check=True,
    )

    assert done.stdout.startswith(f"True {tmp_path / 'site'}")
