"""Tests on the real CIFAR-10, which no package contains: they run only where a copy exists."""

import json
import os
from pathlib import Path

import pytest

from tests.trainer import sources
from trainer import data
from trainer.__main__ import main
from trainer.data import CIFAR10

LEAST = 0.6
"""Minimum accuracy after training on a tenth of the images; chance is 0.1."""


@pytest.fixture(scope="module")
def cifar10() -> Path:
    folder = Path(os.environ.get("CIFAR10", sources.HELD / "cifar10"))
    forms = (CIFAR10.file, "cifar10.u8")
    if not any((folder / form).exists() for form in forms):
        pytest.skip(f"no CIFAR-10: {folder} holds none of {', '.join(forms)}; set $CIFAR10 to another folder")
    return folder


def test_real_cifar10_has_the_means_that_its_images_are_normalized_by(cifar10: Path) -> None:
    dataset = data.load("cifar10", cifar10)

    size = dataset.train.side**2
    sums = [0, 0, 0]
    for place in range(0, len(dataset.train.pixels), size):
        sums[place // size % 3] += sum(dataset.train.pixels[place : place + size])
    means = [total / dataset.train.count / size / 255 for total in sums]
    assert means == pytest.approx([0.4914, 0.4822, 0.4465], abs=0.0001)


def test_a_narrow_network_learns_real_cifar10(cifar10: Path, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    knobs = ("--width=8", "--epochs=10", "--batch_size=128", "--train_images=5000", "--test_images=1000")

    code = main(["cifar10", *knobs], {"SWEEP_DATA": str(cifar10), "SWEEP_RESULT": str(result)})

    assert code == 0
    document = json.loads(result.read_text())
    assert document["data"]["name"] == "cifar10"
    assert document["metrics"]["test_accuracy"] >= LEAST
