"""The grids whose real curves the benchmarks of early stopping and of halving replay, and how they are run.

`python benchmarks/grids.py record FOLDER [WORKLOAD …]` trains every trial of both grids anew, one
thread each, and writes `benchmarks/data/<workload>.json`; FOLDER holds a folder a workload, as `SWEEP_DATA`
names one.
An hour of one core; what is there stands unless the trainer changes.
"""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "benchmarks" / "data"
WORKLOADS = ("mnist", "fashion-mnist")
METRIC = "test_accuracy"
EPOCHS = 27
"""Three rungs of three: 1, 3, 9, 27."""
IMAGES = 2000
"""To train with, and to test with: a trial takes ten seconds, and the curves still cross."""
GRID: Mapping[str, tuple[float, ...]] = {
    "learning_rate": (0.003, 0.01, 0.03, 0.1, 0.3),
    "momentum": (0.0, 0.9),
    "batch_size": (32, 128),
    "width": (4, 8, 16),
}

Assignment = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """One trial that was really run: what it was, and its metric after each epoch."""

    assignment: Assignment
    values: tuple[float, ...]


def assignments() -> Iterator[dict[str, float]]:
    """List the grid, the last parameter fastest."""
    for values in itertools.product(*GRID.values()):
        yield dict(zip(GRID, values, strict=True))


def load(workload: str) -> tuple[Curve, ...]:
    """Read the recorded curves of a workload."""
    data = json.loads((DATA / f"{workload}.json").read_text(encoding="utf-8"))
    return tuple(
        Curve(dict(zip(data["parameters"], values, strict=True)), tuple(curve))
        for values, curve in data["trials"]
    )


def run(
    workload: str, folder: Path, assignment: Assignment, variables: Mapping[str, str] | None = None
) -> tuple[float, ...]:
    """Train once; give the metric after each epoch that was trained here."""
    knobs = {"network": "small", "train_images": IMAGES, "test_images": IMAGES, **assignment}
    command = [sys.executable, "-m", "trainer", workload, *(f"--{name}={knobs[name]}" for name in knobs)]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "SWEEP_DATA": str(folder / workload)}
    done = subprocess.run(
        command, env=environ | dict(variables or {}), cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"step"')]
    return tuple(line[METRIC] for line in lines)


def record(workload: str, folder: Path) -> None:
    """Run a workload's grid, and keep its curves."""
    listed = list(assignments())
    with ThreadPoolExecutor(int(os.environ.get("WORKERS", "2"))) as pool:
        curves = list(pool.map(lambda one: run(workload, folder, {**one, "epochs": EPOCHS}), listed))
    rows = [json.dumps([list(one.values()), curve]) for one, curve in zip(listed, curves, strict=True)]
    head = json.dumps({"parameters": list(GRID), "metric": METRIC, "images": IMAGES})[:-1]
    DATA.mkdir(exist_ok=True)
    text = f'{head}, "trials": [\n' + ",\n".join(rows) + "\n]}\n"
    (DATA / f"{workload}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["record", folder, *some]:
            for each in some or WORKLOADS:
                record(each, Path(folder).resolve())
        case _:
            sys.exit(__doc__)
