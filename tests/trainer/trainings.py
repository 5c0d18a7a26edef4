"""Trainings of few images, run in this process."""

from typing import Any

from trainer.checkpoint import EpochMetrics
from trainer.compute import Group, set_up_device
from trainer.contract import Environment
from trainer.files import Dataset
from trainer.hyperparameters import Configuration, Network, RunOptions
from trainer.train import Setup, Training, begin, check


def a_training(
    network: Network,
    dataset: Dataset,
    *,
    workload: str = "mnist",
    environment: Environment | None = None,
    **options: Any,
) -> Training:
    """Begin a training; in fp32 unless another precision is given, because every machine supports it."""
    environment, group = environment or Environment(), Group()
    configuration = Configuration(workload, network, RunOptions(**{"precision": "fp32", **options}))
    check(configuration, dataset, group=group)
    device = set_up_device(environment, configuration.options)
    return begin(Setup(configuration, dataset, environment, device, group))


def run(network: Network, dataset: Dataset, **changes: Any) -> list[EpochMetrics]:
    training = a_training(network, dataset, **changes)
    training.run(lambda _: None)
    return training.progress.epochs


def numbers(epochs: list[EpochMetrics]) -> list[tuple[float | None, ...]]:
    """Return everything that is the same for the same seed on one machine."""
    return [(epoch.loss, epoch.accuracy, epoch.test_accuracy, epoch.test_loss) for epoch in epochs]
