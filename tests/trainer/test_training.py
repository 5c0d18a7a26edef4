import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.trainer.trainings import a_training, numbers, run
from trainer.batches import ImageTensors
from trainer.compute import Device
from trainer.contract import BAD_HYPERPARAMETERS, Environment, TrialError
from trainer.evaluate import evaluate
from trainer.files import Dataset
from trainer.hyperparameters import Eidf, Network, Resnet9, Small
from trainer.result import metrics

QUICK = Small(learning_rate=0.05, batch_size=30, epochs=2, width=2)
QUICK_RESNET = Resnet9(batch_size=50, epochs=1, width=2)
QUICK_EIDF = Eidf(batch_size=50, epochs=1, width=2, hidden=8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("precision", "threads"),
    [("auto", 1), ("fp32", 1), ("fp32", 2)],
    ids=["best", "one thread", "two threads"],
)
@pytest.mark.parametrize("network", [QUICK, QUICK_EIDF, QUICK_RESNET], ids=["small", "eidf", "resnet9"])
def test_same_seed_same_bits(few: Dataset, network: Network, precision: str, threads: int) -> None:
    environment = Environment(seed=3, threads=threads)

    first = run(network, few, environment=environment, precision=precision)
    again = run(network, few, environment=environment, precision=precision)

    assert numbers(first) == numbers(again)


def test_a_step_follows_the_sum_over_the_batch_scaled_by_rate_and_decay(few: Dataset) -> None:
    network = replace(QUICK_RESNET, batch_size=200, momentum=0.0, warmup=0.0, epochs=2, label_smoothing=0.1)
    training = a_training(network, few)
    images = next(iter(training.epochs))
    before = training.model.get_parameter("linear.weight").detach().clone()
    inputs, targets = images.batch(0)
    loss = functional.cross_entropy(training.model(inputs), targets, label_smoothing=0.1, reduction="sum")
    (slope,) = torch.autograd.grad(loss, [training.model.get_parameter("linear.weight")])

    training._step(images, 0)  # noqa: SLF001

    rate = 0.4 * (1 - 1 / 2) / 200
    expected = before - rate * (slope + 0.0005 * 200 * before)
    torch.testing.assert_close(
        training.model.get_parameter("linear.weight").detach(), expected, rtol=1e-4, atol=1e-6
    )


def test_every_epoch_sees_every_image_and_is_tested_and_reported(few: Dataset) -> None:
    reported: list[int] = []
    training = a_training(QUICK, few)

    training.run(lambda epochs: reported.append(epochs[-1].number))

    epochs = training.progress.epochs
    assert reported == [1, 2]
    assert [epoch.images for epoch in epochs] == [200, 200]
    assert epochs[1].loss < epochs[0].loss
    assert all(epoch.test_accuracy is not None for epoch in epochs)


def test_only_the_epochs_that_are_due_and_the_last_are_tested(few: Dataset) -> None:
    epochs = run(replace(QUICK, epochs=5), few, test_every=2)

    assert [epoch.number for epoch in epochs if epoch.test_accuracy is not None] == [2, 4, 5]


MATTERS: list[tuple[Network, dict[str, tuple[Any, ...]]]] = [
    (
        QUICK,
        {"learning_rate": (0.06,), "batch_size": (31,), "epochs": (3,), "momentum": (0.8,), "width": (3,)}
        | {"weight_decay": (0.1,), "label_smoothing": (0.1,), "warmup": (0.5,)},
    ),
    (
        QUICK_EIDF,
        {"learning_rate": (0.9,), "batch_size": (51,), "epochs": (2,), "rho": (0.8,), "epsilon": (1e-5,)}
        | {
            "weight_decay": (0.1,),
            "dropout": (0.0,),
            "hidden_dropout": (0.0,),
            "width": (3,),
            "hidden": (9,),
        },
    ),
    (
        QUICK_RESNET,
        {"max_learning_rate": (0.6,), "data_aug_cutout_size": (12, 0), "batch_size": (40,), "flip": (0.0,)}
        | {"momentum": (0.99,), "batch_norm": (False,), "epochs": (2,), "warmup": (0.5,), "width": (3,)}
        | {"weight_decay": (0.05,), "label_smoothing": (0.1,), "logit_scale": (0.25,), "crop_padding": (0,)},
    ),
]


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    ("network", "change"),
    [
        pytest.param(network, {name: value}, id=f"{type(network).__name__}-{name}={value}")
        for network, changes in MATTERS
        for name, values in changes.items()
        for value in values
    ],
)
def test_every_hyperparameter_matters(few: Dataset, network: Network, change: dict[str, Any]) -> None:
    base = run(network, few)

    changed = run(replace(network, **change), few)

    assert changed[-1].test_loss != base[-1].test_loss


def test_a_training_that_diverges_ends_early_with_nan(few: Dataset) -> None:
    epochs = run(Small(learning_rate=1e30, batch_size=30, epochs=50, width=2), few)

    measured = metrics(epochs)
    assert sum(epoch.images for epoch in epochs) < 400
    assert all(math.isnan(measured[name]) for name in ("test_accuracy", "test_loss", "train_loss"))
    assert math.isfinite(measured["train_seconds"])


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (Small(batch_size=201), "--batch_size: must be at most 200 (all training images), got 201"),
        (
            Resnet9(batch_size=50, data_aug_cutout_size=33),
            "--data_aug_cutout_size: must be at most 32 (pixels, the image's edge), got 33",
        ),
        (
            Resnet9(batch_size=50, crop_padding=32),
            "--crop_padding: must be at most 31 (pixels, less than the image's edge), got 32",
        ),
    ],
    ids=["batch", "cutout", "padding"],
)
def test_values_that_do_not_fit_the_images_are_rejected(few: Dataset, network: Network, message: str) -> None:
    with pytest.raises(TrialError) as caught:
        a_training(network, few)

    assert str(caught.value) == message
    assert caught.value.exit_code == BAD_HYPERPARAMETERS


def test_evaluation_counts_all_images_whatever_the_size_of_a_pass() -> None:
    right = torch.arange(2500) % 10
    labels = torch.where(torch.arange(2500) < 2000, right, (right + 1) % 10)
    pixels = functional.one_hot(right, 10).to(torch.uint8).mul(255).view(2500, 10, 1, 1)
    images = ImageTensors(pixels, labels, torch.zeros(1, 10, 1, 1), torch.ones(1, 10, 1, 1))

    evaluation = evaluate(torch.nn.Flatten(), images, device=Device(torch.device("cpu"), "fp32", 1))

    assert evaluation.accuracy == 0.8
    assert evaluation.loss == pytest.approx(math.log(math.e + 9) - 0.8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("network", "images", "least"),
    [
        (Small(learning_rate=0.1, batch_size=32, epochs=2), 0, 0.95),
        (Eidf(batch_size=32, epochs=1), 2000, 0.8),
        pytest.param(
            *(Resnet9(batch_size=64, epochs=4, width=8), 2000, 0.75),
            marks=pytest.mark.full_suite("larger networks"),
        ),
    ],
    ids=["small", "eidf", "resnet9"],
)
def test_a_network_learns_real_digits(mnist_5k: Dataset, network: Network, images: int, least: float) -> None:
    epochs = run(network, mnist_5k, train_images=images, precision="auto", test_every=1000)

    assert epochs[-1].test_accuracy is not None
    assert epochs[-1].test_accuracy >= least
