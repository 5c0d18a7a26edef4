"""Measure what the launcher adds to a trial: CPU of a trivial command in a pod of its own, and in a pack.

Usage: python benchmarks/launcher.py [--rows 100] [--repeats 3]
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.meter import used_by  # noqa: E402
from tests.launcher.folders import LAUNCHER, TrialFolder  # noqa: E402

COMMAND = ["sh", "-c", "echo test_accuracy=0.5"]


def batch(rows: int) -> TrialFolder:
    """Write a batch of trivial trials, and both programs of the launcher."""
    folder = TrialFolder(Path(tempfile.mkdtemp(prefix="launcher-")))
    folder.rows = [f"t{row:011d},{row}" for row in range(rows)]
    folder.command = [*COMMAND]
    folder.changes = {
        "metric": {"name": "test_accuracy", "source": "stdout"},
        "pack": {"at_once": 1, "rows": rows, "attempts": 1},
    }
    folder.write()
    (folder.root / "launcher").mkdir()
    for program in (*LAUNCHER.parent.glob("launch*.py"), ROOT / "base/components/pack/v1/pack.py"):
        shutil.copy(program, folder.root / "launcher")
    return folder


def alone(folder: TrialFolder) -> None:
    """Run each row by a launcher of its own, as in a container."""
    del folder.changes["pack"]
    folder.write()
    for row in range(len(folder.rows)):
        results = folder.root / f"results/{row}"
        _launch(folder, "launch.py", SWEEP_INDEX=str(row), SWEEP_RESULTS=str(results))


def packed(folder: TrialFolder) -> None:
    """Run all rows in one pod."""
    _launch(folder, "pack.py", SWEEP_INDEX="0")


def plain(folder: TrialFolder) -> None:
    """Run the commands without a launcher."""
    for _ in folder.rows:
        subprocess.run(COMMAND, cwd=folder.code, check=True, capture_output=True)


def _launch(folder: TrialFolder, program: str, **variables: str) -> None:
    command = [sys.executable, "-B", str(folder.root / "launcher" / program)]
    environment = folder.variables(variables)
    subprocess.run(command, env=environment, cwd=folder.code, check=True, capture_output=True)


WAYS: tuple[Callable[[TrialFolder], None], ...] = (plain, alone, packed)


def measured(way: Callable[[TrialFolder], None], rows: int) -> float:
    """Return the milliseconds of CPU for each row."""
    folder = batch(rows)
    try:
        return 1000 * used_by(lambda: way(folder)).seconds / rows
    finally:
        shutil.rmtree(folder.root)


def main() -> None:
    """Measure all ways alternately, and print the median of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    runs = [[measured(way, options.rows) for way in WAYS] for _ in range(options.repeats)]
    for way, results in zip(WAYS, zip(*runs, strict=True), strict=True):
        print(f"{way.__name__:8}{statistics.median(results):8.1f} ms of CPU for each trial")


if __name__ == "__main__":
    main()
