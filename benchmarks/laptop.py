"""Measure `sweep run` on a laptop beside `xargs -P2` and Optuna with SQLite: trivial trials, two at once.

The three run alternately, several times; medians of wall-clock and CPU seconds are printed, and the ratios to xargs.
Usage: python benchmarks/laptop.py [--trials 50 200] [--repeats 5]
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPT = """import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
x = parser.parse_args().x
print(f"score={1 - (x - 2) ** 2}")
"""
SPEC = """name: score
method: grid
metric: {{name: score, goal: maximize, source: stdout}}
parameters:
  x: {{values: [{values}]}}
command: [python3, code/score.py, "${{args}}"]
run:
  code: {{path: code}}
  resources: {{cpu: 1, memory: 128Mi}}
  parallelism: 2
  timeout: 1m
"""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""As a user has it: Python caches what it compiles."""
OPTUNA = """import subprocess, sys
import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)
values = [float(value) for value in sys.argv[3].split(",")]
study = optuna.create_study(
    study_name="score", storage=sys.argv[1], direction="maximize", load_if_exists=True,
    sampler=optuna.samplers.GridSampler({"x": values}, seed=int(sys.argv[2])),
)

def objective(trial):
    x = trial.suggest_float("x", min(values), max(values) + 1)
    done = subprocess.run([sys.executable, "code/score.py", f"--x={x}"], capture_output=True, check=True, text=True)
    return float(done.stdout.partition("=")[2])

study.optimize(objective, n_trials=len(values), n_jobs=2)
"""


def values(trials: int) -> list[str]:
    """Return distinct values of x."""
    return [f"{number / trials:.6f}" for number in range(trials)]


def repository(folder: Path, trials: int) -> None:
    """Create a repository with the script, and the spec as `sweep new` leaves it: not committed."""
    (folder / "code").mkdir(parents=True)
    (folder / "code/score.py").write_text(SCRIPT)
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Start"]):
        subprocess.run(
            ["git", "-c", "user.name=Ada", "-c", "user.email=a@example.org", *words], cwd=folder, check=True
        )
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        subprocess.run(["git", "config", key, value], cwd=folder, check=True)
    (folder / "sweeps").mkdir()
    (folder / "sweeps/score.yaml").write_text(SPEC.format(values=", ".join(values(trials))))


def run_xargs(folder: Path, trials: int) -> None:
    """Run the script once per value with `xargs -P2`."""
    command = ["xargs", "-P2", "-I{}", sys.executable, "code/score.py", "--x={}"]
    text = "\n".join(values(trials))
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=True)
    assert done.stdout.count("score=") == trials


def run_optuna(folder: Path, trials: int) -> None:
    """Run the script once per value from an Optuna study in SQLite with two threads."""
    subprocess.run(
        [sys.executable, "-c", OPTUNA, f"sqlite:///{folder}/study.db", "1", ",".join(values(trials))],
        cwd=folder,
        capture_output=True,
        check=True,
    )


def run_sweep(folder: Path, _: int) -> None:
    """Run the sweep with `sweep run`."""
    subprocess.run(
        [sys.executable, "-m", "sweepledger.cli", "run", "score"],
        cwd=folder,
        env={**ENVIRONMENT, "PYTHONPATH": str(ROOT / "generator")},
        capture_output=True,
        check=True,
    )
    assert (folder / "results/score/summary.csv").is_file()


WAYS: dict[str, Callable[[Path, int], None]] = {
    "xargs -P2": run_xargs,
    "sweep run": run_sweep,
    "optuna, sqlite": run_optuna,
}


def measured(way: Callable[[Path, int], None], trials: int) -> tuple[float, float]:
    """Return the wall-clock and the CPU seconds of one run in a fresh repository."""
    with tempfile.TemporaryDirectory(prefix="laptop-") as scratch:
        folder = Path(scratch) / "lab"
        repository(folder, trials)
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        way(folder, trials)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall, cpu


def main() -> None:
    """Measure, and print one line per number of trials and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=list(WAYS), nargs="+", default=list(WAYS))
    options = parser.parse_args()
    print(f"{'trials':>6}  {'way':<16}{'wall s':>8}{'CPU s':>8}{'wall/xargs':>12}{'CPU/xargs':>12}")
    for trials in options.trials:
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in options.only}
        for _ in range(options.repeats):
            for name in options.only:
                runs[name].append(measured(WAYS[name], trials))
        medians = {
            name: tuple(statistics.median(run[place] for run in results) for place in (0, 1))
            for name, results in runs.items()
        }
        first = next(iter(medians.values()))
        for name, (wall, cpu) in medians.items():
            print(
                f"{trials:>6}  {name:<16}{wall:>8.2f}{cpu:>8.2f}{wall / first[0]:>12.2f}{cpu / first[1]:>12.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
