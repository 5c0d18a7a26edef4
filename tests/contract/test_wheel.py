"""What a user installs: the generator alone, with the Kubernetes building blocks inside."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_carries_the_generator_and_base_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
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
        "from sweepledger.repo.package_data import base_folder as base\n"
        "print((base() / 'jobs/v1/job.yaml').is_file(), base())"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
        check=True,
        capture_output=True,
        text=True,
    )

    assert done.stdout.startswith(f"True {tmp_path / 'site'}")
