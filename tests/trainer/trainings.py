"""Trainings of few images, begun and run in this process."""

from typing import Any

from trainer import machine, trial
from trainer.contract import Surroundings
from trainer.data import Dataset
from trainer.group import Group
from trainer.hyperparameters import Knobs, Network, Running
from trainer.progress import Epoch
from trainer.train import Training


def a_training(
    network: Network,
    dataset: Dataset,
    *,
    workload: str = "mnist",
    given: Surroundings | None = None,
    group: Group | None = None,
    **running: Any,
) -> Training:
    """Begin a training; in fp32 unless told otherwise, which every machine can do."""
    given, group = given or Surroundings(), group or Group()
    knobs = Knobs(workload, network, Running(**{"precision": "fp32", **running}))
    trial.check(knobs, dataset, group)
    computer = machine.prepare(given, knobs.running, 0)
    return trial.begin(knobs, dataset, given, computer, group)


def run(network: Network, dataset: Dataset, **changes: Any) -> list[Epoch]:
    """Train to the end."""
    training = a_training(network, dataset, **changes)
    training.run(lambda _: None)
    return training.progress.epochs


def numbers(epochs: list[Epoch]) -> list[tuple[float | None, ...]]:
    """All that a machine gives again with the same seed."""
    return [(epoch.loss, epoch.accuracy, epoch.test_accuracy, epoch.test_loss) for epoch in epochs]
