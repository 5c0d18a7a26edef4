"""The trainer against the same trainings as people first write them (`training_reference.py`): CPU seconds.

    python benchmarks/training.py [resnet9|small|eidf|start|epoch|grid|gpu]... [--rounds 3]

Both take turns, a process each and one thread, and medians are compared: what else the machine does, it does
to both. Images: `python -m tests.trainer.sources` fetches them. `gpu` needs CUDA and, for an accuracy on
CIFAR-10, a folder of it in SWEEP_DATA; without, it trains on noise and tells the throughput alone.
"""

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.trainer import sources  # noqa: E402 - the repository is on the path only now
from trainer.data import FASHION_MNIST, MNIST, prepare  # noqa: E402

REFERENCE = str(ROOT / "benchmarks/training_reference.py")
ALIVE = 50
"""Images a CPU second that the reference must reach on the wide ResNet-9: the ratio to a lame one is void."""
DEMO = ("--learning_rate=0.04", "--batch_size=64", "--epochs=2")
GRID = {
    "max_learning_rate": (0.4, 0.6),
    "momentum": (0.9, 0.99),
    "data_aug_cutout_size": (5, 12),
    "batch_size": (128, 512),
}
"""That of sweeps/fashion-grid.yaml."""


@dataclass(frozen=True)
class Done:
    """What a process printed last, and what it cost."""

    report: dict[str, Any]
    cpu_seconds: float

    @property
    def accuracy(self) -> float:
        return float(self.report["metrics"]["test_accuracy"])


def process(*arguments: str, **environ: str) -> Done:
    """Run Python with these arguments, one thread, and give its last line and its CPU time."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **environ}
    with tempfile.TemporaryFile("w+") as output:
        started = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environment, stdout=output)
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode:
            sys.exit(f"{' '.join(arguments)} ended with exit code {started.returncode}")
        output.seek(0)
        document = json.loads(output.read().splitlines()[-1])
    return Done(document, usage.ru_utime + usage.ru_stime)


def trial(*arguments: str, folder: Path, seed: int = 0) -> Done:
    """Run a trial as a sweep does."""
    return process("-m", "trainer", *arguments, SWEEP_DATA=str(folder), SWEEP_SEED=str(seed))


def alternately(rounds: int, *sides: Callable[[], float]) -> list[float]:
    """Take turns; give each side's median."""
    taken = [[side() for side in sides] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


def steady(
    workload: str, folder: Path, reference: Sequence[str], arguments: Sequence[str]
) -> list[Callable[[], float]]:
    """Give both sides of a comparison of images a CPU second, behind the first epoch."""
    theirs = [REFERENCE, *reference[:1], str(folder), "--workload", workload, *reference[1:]]
    ours = [__file__, "steady", workload, *arguments]
    return [
        lambda: float(process(*theirs).report["images_per_cpu_second"]),
        lambda: float(process(*ours, SWEEP_DATA=str(folder)).report["images_per_cpu_second"]),
    ]


def resnet9(folders: dict[str, Path], rounds: int) -> None:
    """Compare the wide ResNet-9."""
    count = ["--width=64", "--batch_size=128", "--train_images=256", "--test_images=100"]
    sides = steady(
        "fashion-mnist",
        folders["fashion-mnist"],
        ["resnet9", *count, "--epochs=2", "--learning_rate=0.4"],
        ["--network=resnet9", *count, "--epochs=4", "--test_every=99"],
    )
    theirs, ours = alternately(rounds, *sides)
    void = "" if theirs >= ALIVE else f"; VOID: the reference must reach {ALIVE}"
    say(
        "ResNet-9 width 64, images a CPU second",
        theirs,
        ours,
        ours / theirs,
        f"bar 2.5 with AMX, 1.15 else{void}",
    )


def small(folders: dict[str, Path], rounds: int) -> None:
    """Compare the small CNN: when it runs, and from process start to result."""
    count = ["--train_images=10000", "--test_images=100"]
    sides = steady(
        "mnist", folders["mnist"], ["small", *count, "--epochs=2"], [*count, "--epochs=4", "--test_every=99"]
    )
    theirs, ours = alternately(rounds, *sides)
    say("small CNN, images a CPU second", theirs, ours, ours / theirs, "bar 1.3")
    for name in ("mnist-5k", "mnist"):
        theirs, ours = alternately(rounds, *whole(folders[name]))
        say(
            f"small CNN, 2 epochs of {name}, CPU s from start to result", theirs, ours, theirs / ours, "bar 3"
        )


def eidf(folders: dict[str, Path], rounds: int) -> None:
    """Compare PyTorch's MNIST example, in the precision that the trainer chooses here."""
    count = ["--width=32", "--train_images=2048", "--test_images=100"]
    sides = steady(
        "mnist",
        folders["mnist"],
        ["eidf", *count, "--epochs=2"],
        ["--network=eidf", *count, "--epochs=4", "--test_every=99"],
    )
    theirs, ours = alternately(rounds, *sides)
    say(
        "PyTorch's MNIST example, images a CPU second",
        theirs,
        ours,
        ours / theirs,
        "bar 2 in fp32, 3.5 in bf16",
    )


def whole(folder: Path) -> list[Callable[[], float]]:
    """Give both sides of a comparison of the CPU seconds of a whole process."""
    return [
        lambda: process(REFERENCE, "small", str(folder), *DEMO).cpu_seconds,
        lambda: trial("mnist", *DEMO, folder=folder).cpu_seconds,
    ]


def start(folders: dict[str, Path], rounds: int) -> None:
    """Measure the CPU seconds up to the first step."""
    importing = "import json, time, torch; print(json.dumps({'seconds': time.process_time()}))"
    shared, first = alternately(
        rounds,
        lambda: float(process("-c", importing).report["seconds"]),
        lambda: float(
            trial("mnist", "--epochs=1", "--train_images=64", folder=folders["mnist"]).report["cpu_seconds"][
                "first_step"
            ]
        ),
    )
    print(f"start to first step: {first:.2f} CPU s, of which importing torch takes {shared:.2f}; bar 2.5")


def epoch(folders: dict[str, Path], rounds: int) -> None:
    """Train the small CNN once through MNIST."""
    arguments = ("mnist", "--epochs=1", "--learning_rate=0.04", "--batch_size=64")
    done = [trial(*arguments, folder=folders["mnist"], seed=seed) for seed in range(rounds)]
    accuracies = ", ".join(f"{each.accuracy:.2%}" for each in done)
    seconds = statistics.median(each.cpu_seconds for each in done)
    print(f"MNIST, one epoch: {accuracies} (bar 98.5 %), {seconds:.1f} CPU s with start and test (bar 12)")


def grid(folders: dict[str, Path], rounds: int) -> None:  # noqa: ARG001 - one is sixteen trials
    """Train NVIDIA's grid in small: sixteen processes, two at a time."""
    fixed = (
        "--network=resnet9",
        "--width=8",
        "--train_images=2000",
        "--test_images=1000",
        "--epochs=5",
        "--test_every=5",
    )

    def run_trial(values: tuple[float, ...]) -> Done:
        knobs = (f"--{name}={value}" for name, value in zip(GRID, values, strict=True))
        return trial("fashion-mnist", *fixed, *knobs, folder=folders["fashion-mnist"])

    combinations = list(itertools.product(*GRID.values()))
    began = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        done = dict(zip(combinations, pool.map(run_trial, combinations), strict=True))
    wall = time.perf_counter() - began
    for values, each in done.items():
        print(
            "  " + "  ".join(f"{name}={value}" for name, value in zip(GRID, values, strict=True)),
            f"{each.accuracy:.1%}",
        )
    means = {
        batch: statistics.fmean(each.accuracy for values, each in done.items() if values[3] == batch)
        for batch in GRID["batch_size"]
    }
    total = sum(each.cpu_seconds for each in done.values())
    print(
        f"sixteen trials on Fashion-MNIST: {total:.1f} CPU s (bar 60), {wall:.0f} s; "
        f"batch 128 {means[128]:.1%}, batch 512 {means[512]:.1%} (bar: 8 points between)"
    )


def gpu(rounds: int) -> None:
    """Train NVIDIA's recipe for at least ten seeds in one process that is warm."""
    import torch  # noqa: PLC0415 - loads for a second

    if not torch.cuda.is_available():
        print("gpu: skipped, since there is no CUDA here")
        return
    from benchmarks import training_gpu  # noqa: PLC0415

    training_gpu.measure(Path(os.environ.get("SWEEP_DATA", "")), max(rounds, 10))


def child(arguments: Sequence[str]) -> None:
    """Run a trial in this process, and print its images a CPU second between the first and the last epoch."""
    from trainer import compute, data, train  # noqa: PLC0415 - only the child needs torch
    from trainer.contract import read_environment  # noqa: PLC0415
    from trainer.hyperparameters import parse  # noqa: PLC0415

    environment, configuration = read_environment(os.environ), parse(arguments[0], arguments[1:])
    marks: list[tuple[float, int]] = []
    train.train(
        configuration,
        data.load(configuration.workload, environment.data),
        environment=environment,
        group=compute.join_group(os.environ),
        report=lambda epochs: marks.append((time.process_time(), epochs[-1].images)),
    )
    images = sum(images for _, images in marks[1:-1])
    print(json.dumps({"images_per_cpu_second": images / (marks[-2][0] - marks[0][0])}))


def say(what: str, theirs: float, ours: float, ratio: float, bar: str) -> None:
    print(f"{what}: reference {theirs:.3g}, trainer {ours:.3g}: {ratio:.2f} times ({bar})", flush=True)


def main() -> None:
    """Measure what is asked for."""
    if sys.argv[1:2] == ["steady"]:
        child(sys.argv[2:])
        return
    measures: dict[str, Callable[[dict[str, Path], int], None]] = {
        "resnet9": resnet9,
        "small": small,
        "eidf": eidf,
        "start": start,
        "epoch": epoch,
        "grid": grid,
    }
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", choices=[*measures, "gpu", []])
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        folders = {name: Path(folder) / name for name in ("mnist-5k", "mnist", "fashion-mnist")}
        prepare("mnist-5k", folders["mnist-5k"])
        for manifest in (MNIST, FASHION_MNIST):
            prepare(manifest.name, folders[manifest.name], source=sources.folder(manifest))
        for name in wanted.what or measures:
            measures[name](folders, wanted.rounds) if name in measures else gpu(wanted.rounds)


if __name__ == "__main__":
    main()
