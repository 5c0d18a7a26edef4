"""CPU seconds of the commands that people wait for: of the whole process tree, median of five.

make bench
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.meter import measured  # noqa: E402
from sweepledger.repo import kustomize  # noqa: E402

RUNS = 5
BARS = {"sweep --help": 0.3, "sweep validate mnist-grid": 0.6, "kustomize build (mnist-grid)": 1.0}


def main() -> int:
    """Measure in a repository that holds the demo's spec and its overlay."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        git = ["git", "-c", "user.name=Bench", "-c", "user.email=bench@example.org"]
        for source, target in (
            ("sweeps/mnist-grid.yaml", "sweeps/mnist-grid.yaml"),
            ("sweepledger.yaml", "sweepledger.yaml"),
        ):
            (work / target).parent.mkdir(exist_ok=True)
            (work / target).write_bytes((ROOT / source).read_bytes())
        (work / "trainer").mkdir()
        (work / "trainer/__init__.py").touch()
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Start"]):
            subprocess.run([*git, *command], cwd=work, check=True)
        sweep = [sys.executable, "-m", "sweepledger.cli"]
        subprocess.run(
            [*sweep, "generate"],
            cwd=work,
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        (overlay,) = (path for path in (work / "overlays/active").iterdir() if path.is_dir())
        commands = {
            "sweep --help": [*sweep, "--help"],
            "sweep validate mnist-grid": [*sweep, "validate", "mnist-grid"],
            "sweep generate --check mnist-grid": [*sweep, "generate", "mnist-grid", "--check"],
            "kustomize build (mnist-grid)": [*kustomize.command(), str(overlay)],
        }
        print(f"{'command':36} {'CPU s':>7} {'bar':>5}   (median of {RUNS})")
        late = False
        for name, argv in commands.items():
            seconds = statistics.median(measured(argv, work).seconds for _ in range(RUNS))
            bar = BARS.get(name)
            late |= bar is not None and seconds > bar
            print(f"{name:36} {seconds:7.3f} {bar or '':>5}")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
