"""NVIDIA's recipe on a GPU: 24 epochs, one process that is warm, the mean of some seeds.

`training.py gpu` calls it. On CIFAR-10 it tells accuracies; on noise of the same size, how long it takes.
"""

import os
import statistics
import sys
from pathlib import Path

from trainer import compute, data, result, train
from trainer.contract import Environment, TrialError
from trainer.files import Dataset, Images
from trainer.hyperparameters import parse

NOISE = "noise"
RECIPE = ("--max_learning_rate=0.4", "--data_aug_cutout_size=8", "--batch_size=512", "--test_every=99")


def measure(folder: Path, seeds: int, *more: str) -> None:
    """Train on one seed to warm up, then on each of the others, and print what came of it."""
    dataset = images(folder)
    runs = [run(dataset, seed, *more) for seed in range(seeds + 1)][1:]
    seconds = [taken for taken, _ in runs]
    print(f"{seeds} seeds on {dataset.name}: {statistics.fmean(seconds):.2f} s of training (bar 12)")
    if dataset.name != NOISE:
        accuracies = [accuracy for _, accuracy in runs]
        mean, least = statistics.fmean(accuracies), min(accuracies)
        print(f"test accuracy: mean {mean:.2%} (bar 94.0 %), least {least:.2%}")


def run(dataset: Dataset, seed: int, *more: str) -> tuple[float, float]:
    """Train once; give the seconds of training and the test accuracy."""
    training = train.train(
        parse("cifar10", [*RECIPE, *more]),
        dataset,
        environment=Environment(seed=seed),
        group=compute.join_group(os.environ),
        report=lambda _: None,
    )
    metrics = result.metrics(training.progress.epochs)
    return metrics["train_seconds"], metrics["test_accuracy"]


def images(folder: Path) -> Dataset:
    """Read CIFAR-10, or make noise of its size."""
    try:
        return data.load("cifar10", folder)
    except TrialError as error:
        sys.stderr.write(f"no CIFAR-10, so no accuracy: {error}\n")
    return Dataset(NOISE, "none", noise(50_000), noise(10_000))


def noise(count: int) -> Images:
    """Make images of nothing, with classes in turn."""
    return Images(
        os.urandom(count * 3072), bytes(number % 10 for number in range(count)), channels=3, side=32
    )
