"""Some of the trial's digits, as tensors: small data, so that a whole grid passes on two cores."""

import os
from pathlib import Path

import torch
import yaml
from torch import Tensor

from trainer import data, model

CPU = torch.device("cpu")


def values() -> dict[str, object]:
    """Look up this trial's set as the seeds' scripts do: item JOB_ID of the whole file."""
    sets = yaml.safe_load(Path("hyperparams.yml").read_text())
    found: dict[str, object] = sets[int(os.environ["JOB_ID"]) - 1]["hyperparam_set"]
    return found


def load(count: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Give so many digits of each class to train with, and half as many to test with."""
    dataset = data.load(Path(os.environ["SWEEP_DATA"]))
    return _some(dataset.train, count), _some(dataset.test, count // 2)


def _some(digits: data.Digits, count: int) -> tuple[Tensor, Tensor]:
    images, labels = model.tensors(digits, CPU)
    chosen = torch.cat([(labels == kind).nonzero().flatten()[:count] for kind in range(data.CLASSES)])
    chosen = chosen[torch.randperm(len(chosen), generator=torch.Generator().manual_seed(0))]
    return images[chosen], labels[chosen]
