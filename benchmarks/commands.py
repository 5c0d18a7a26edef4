"""CPU seconds of the commands that people wait for: of the whole process tree, median of five.

make bench
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNS = 5
BARS = {"sweep --help": 0.3, "sweep validate mnist-grid": 0.6, "kustomize build (mnist-grid)": 1.0}


def cpu_seconds(argv: list[str], cwd: Path) -> float:
    """Run a command and give what it and its children used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        argv, cwd=cwd, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> int:
    """Measure in a repository that holds the demo's spec and its overlay."""
    sys.path.insert(0, str(ROOT))
    from sweepledger.repo import kustomize  # noqa: PLC0415

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
            seconds = statistics.median(cpu_seconds(argv, work) for _ in range(RUNS))
            bar = BARS.get(name)
            late |= bar is not None and seconds > bar
            print(f"{name:36} {seconds:7.3f} {bar or '':>5}")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
