"""Trainings of a pack with an interpreter of their own and as warm starts: CPU of each, and whether they are equal.

Usage: python benchmarks/warm.py [--rows 8] [--images 256]
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.launcher.folders import LAUNCHER, TrialFolder  # noqa: E402

PROGRAMS = (
    LAUNCHER,
    ROOT / "base/components/pack/v1/pack.py",
    ROOT / "base/components/warm/v1/warm.py",
)


def batch(rows: int, images: int, *, warm: bool) -> TrialFolder:
    """Write a pack of trainings that differ in their learning rate."""
    folder = TrialFolder(Path(tempfile.mkdtemp(prefix="warm-")))
    folder.rows = [f"t{row:011d},{0.02 + row / 1000}" for row in range(rows)]
    options = [f"--train_images={images}", "--test_images=100", "--precision=fp32"]
    folder.command = [sys.executable, "-m", "trainer", "mnist", *options, {"macro": "args"}]
    pack: dict[str, Any] = {"at_once": 1, "rows": rows, "attempts": 1}
    folder.changes = {"pack": {**pack, "warm": True} if warm else pack, "timeout_seconds": 600}
    folder.write()
    (folder.root / "launcher").mkdir()
    for program in PROGRAMS:
        shutil.copy(program, folder.root / "launcher")
    return folder


def measured(rows: int, images: int, *, warm: bool) -> tuple[float, float, list[dict[str, float]]]:
    """Run a pack; return its CPU and wall seconds, and the metrics of its rows that are no times."""
    folder = batch(rows, images, warm=warm)
    try:
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        variables = {"SWEEP_INDEX": "0", "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
        command = [sys.executable, "-B", str(folder.root / "launcher/pack.py")]
        subprocess.run(
            command, env=folder.variables(variables), cwd=folder.root, check=True, capture_output=True
        )
        wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        records = [
            json.loads(next((folder.results / str(row)).glob("*.json")).read_bytes()) for row in range(rows)
        ]
    finally:
        shutil.rmtree(folder.root)
    metrics = [
        {name: value for name, value in record["metrics"].items() if "second" not in name}
        for record in records
    ]
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall, metrics


def main() -> None:
    """Measure both ways, and compare their metrics."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--images", type=int, default=256)
    options = parser.parse_args()
    cold, warm = (measured(options.rows, options.images, warm=is_warm) for is_warm in (False, True))
    for name, (cpu, wall, _) in (("own", cold), ("warm", warm)):
        print(f"{name:6}{cpu / options.rows:8.2f} CPU s, {wall / options.rows:6.2f} s for each trial")
    print(f"equal metrics, to the last bit: {cold[2] == warm[2]}; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
