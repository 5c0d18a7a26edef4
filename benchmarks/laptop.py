"""Measure `sweep run` on a laptop beside `xargs -P2`, Optuna with SQLite and Ray Tune: trivial trials, two at once.

All ways run alternately, several times; medians of wall-clock and CPU seconds are printed, and the ratios to xargs.
Page faults in excess of those of xargs do not depend on other work on the machine.
Usage: python benchmarks/laptop.py [--trials 50 200] [--repeats 5] [--ray PYTHON]

Ray Tune takes part if `--ray` names a Python that has it (`pip install "ray[tune]"` in an environment of its own). Its
CPU seconds are those of the processes that it waits for, so that they are too few rather than too many.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "generator")]

from benchmarks.meter import used_by  # noqa: E402
from sweepledger.operations.scaffold.init import FIRST_SETTINGS  # noqa: E402

SCRIPT = """import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
x = parser.parse_args().x
print(f"score={1 - (x - 2) ** 2}")
"""
OTHER_FILES = 199
"""Files beside the script, of about 5 MB together, of which each trial of `sweep run` has a copy."""
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
PACKED = "  pack: {trials: 100, at_once: 2}\n"
"""What lets one pod run many of them, two at once as before."""
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
RAY = """import subprocess, sys
import ray
from ray import tune

python, folder, code = sys.argv[1:4]
values = [float(value) for value in sys.argv[4].split(",")]

def objective(config):
    command = [python, f"{code}/score.py", f"--x={config['x']}"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    tune.report({"score": float(done.stdout.partition("=")[2])})

ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", _node_ip_address="127.0.0.1")
results = tune.Tuner(
    tune.with_resources(objective, {"cpu": 1}),
    param_space={"x": tune.grid_search(values)},
    tune_config=tune.TuneConfig(metric="score", mode="max"),
    run_config=tune.RunConfig(storage_path=folder, verbose=0),
).fit()
assert len(results) == len(values) and not results.errors
ray.shutdown()
"""


def values(trials: int) -> list[str]:
    """Return distinct values of x."""
    return [f"{number / trials:.6f}" for number in range(trials)]


def repository(folder: Path, trials: int) -> None:
    """Create a repository with the script, and spec and settings as `sweep new` leaves them: not committed."""
    (folder / "code").mkdir(parents=True)
    (folder / "code/score.py").write_text(SCRIPT)
    for number in range(OTHER_FILES):
        (folder / f"code/module{number}.py").write_text(f"VALUE = {number}\n# {'x' * 25_000}\n")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Start"]):
        subprocess.run(
            ["git", "-c", "user.name=Ada", "-c", "user.email=a@example.org", *words], cwd=folder, check=True
        )
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        subprocess.run(["git", "config", key, value], cwd=folder, check=True)
    (folder / "sweeps").mkdir()
    (folder / "sweeps/score.yaml").write_text(SPEC.format(values=", ".join(values(trials))))
    (folder / "sweepledger.yaml").write_bytes(FIRST_SETTINGS)


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


def run_packed(folder: Path, trials: int) -> None:
    """Run the sweep with `sweep run`, many trials in a pod."""
    with (folder / "sweeps/score.yaml").open("a") as file:
        file.write(PACKED)
    run_sweep(folder, trials)


def run_ray(python: str) -> Callable[[Path, int], None]:
    """Return a function that runs the script once per value with Ray Tune of a Python."""

    def run(folder: Path, trials: int) -> None:
        with tempfile.TemporaryDirectory(prefix="ray-") as scratch:
            subprocess.run(
                [
                    python,
                    "-c",
                    RAY,
                    sys.executable,
                    str(folder / "ray"),
                    str(folder / "code"),
                    ",".join(values(trials)),
                ],
                cwd=folder,
                env={**ENVIRONMENT, "RAY_TMPDIR": scratch, "RAY_USAGE_STATS_ENABLED": "0"},
                capture_output=True,
                check=True,
            )

    return run


WAYS: dict[str, Callable[[Path, int], None]] = {
    "xargs -P2": run_xargs,
    "sweep run": run_sweep,
    "sweep run, packed": run_packed,
    "optuna, sqlite": run_optuna,
}


def measured(folder: Path, way: Callable[[Path, int], None], trials: int) -> tuple[float, float, float]:
    """Return the wall-clock and the CPU seconds, and the page faults, of one run in a fresh repository."""
    repository(folder, trials)
    used = used_by(lambda: way(folder, trials))
    return used.wall, used.seconds, used.faults


def main() -> None:
    """Measure, and print one line per number of trials and way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=list(WAYS), nargs="+", default=list(WAYS))
    parser.add_argument("--ray", metavar="PYTHON", help="a Python that has Ray Tune")
    options = parser.parse_args()
    ways = {name: WAYS[name] for name in options.only}
    if options.ray:
        ways["Ray Tune"] = run_ray(options.ray)
    print(
        f"{'trials':>6}  {'way':<18}{'wall s':>8}{'CPU s':>8}{'wall/xargs':>12}{'CPU/xargs':>12}{'faults/xargs':>14}"
    )
    for trials in options.trials:
        runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
        # Deleted at the end: for minutes, ext4 without a journal passes over deleted inodes wherever it makes others.
        with tempfile.TemporaryDirectory(prefix="laptop-") as scratch:
            for repeat in range(options.repeats):
                for number, (name, way) in enumerate(ways.items()):
                    folder = Path(scratch, f"{repeat}-{number}", "lab")
                    runs[name].append(measured(folder, way, trials))
        medians = {
            name: [statistics.median(column) for column in zip(*results, strict=True)]
            for name, results in runs.items()
        }
        first = next(iter(medians.values()))
        for name, (wall, cpu, faults) in medians.items():
            ratios = f"{wall / first[0]:>12.2f}{cpu / first[1]:>12.2f}{faults / first[2]:>14.2f}"
            print(f"{trials:>6}  {name:<18}{wall:>8.2f}{cpu:>8.2f}{ratios}", flush=True)
        print(f"        load: {', '.join(f'{load:.1f}' for load in os.getloadavg())}", flush=True)


if __name__ == "__main__":
    main()
