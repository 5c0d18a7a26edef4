"""Some of the trial's digits, as tensors: small data, so that a whole grid passes on two cores."""

import os
from pathlib import Path

import torch
import yaml
from torch import Tensor

FILE, ROW, SIDE, CLASSES, TEST = "mnist-5k.u8", 785, 28, 10, 100
"""Rows of pixels and a class; of each class the last hundred are to test with."""


def values() -> dict[str, object]:
    """Look up this trial's set as the seeds' scripts do: item JOB_ID of the whole file."""
    sets = yaml.safe_load(Path("hyperparams.yml").read_text())
    hyperparam_set: dict[str, object] = sets[int(os.environ["JOB_ID"]) - 1]["hyperparam_set"]
    return hyperparam_set


def load(count: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Give so many digits of each class to train with, and half as many to test with."""
    content = bytearray((Path(os.environ["SWEEP_DATA"]) / FILE).read_bytes())
    rows = torch.frombuffer(content, dtype=torch.uint8).view(-1, ROW)
    of_class = [rows[rows[:, -1] == kind] for kind in range(CLASSES)]
    train = torch.cat([item[:-TEST][:count] for item in of_class])
    test = torch.cat([item[-TEST:][: count // 2] for item in of_class])
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
    return _tensors(train[order]), _tensors(test)


def _tensors(rows: Tensor) -> tuple[Tensor, Tensor]:
    images = rows[:, :-1].float().div(255).sub(0.1307).div(0.3081)
    return images.view(-1, 1, SIDE, SIDE), rows[:, -1].long()
