"""The accuracy and loss of a trained network on images that it has not seen."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from trainer.batches import ImageTensors
from trainer.compute import Device, Group

IMAGES_PER_PASS = 1000
"""Limits the memory; the result does not depend on it except for rounding."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Means over the images."""

    accuracy: float
    loss: float


@torch.inference_mode()
def evaluate(
    model: nn.Module,
    images: ImageTensors,
    *,
    device: Device,
    group: Group = Group(),  # noqa: B008 frozen
    after_pass: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Classify all images; leaves the network in evaluation mode. Calls `after_pass` after each pass."""
    model.eval()
    group.align(model)
    sums = torch.zeros(2, dtype=torch.float64, device=device.device)
    share = torch.arange(images.count, device=device.device)[group.rank :: group.size]
    for batch in torch.split(share, IMAGES_PER_PASS):
        with device.arithmetic():
            scores = model(images.normalized(images.pixels[batch]))
        labels = images.labels[batch]
        sums[0] += functional.cross_entropy(scores.float(), labels, reduction="sum")
        sums[1] += (scores.argmax(1) == labels).sum()
        after_pass()
    loss, right = group.sum(sums).tolist()
    if not math.isfinite(loss):
        # The accuracy of a diverged network means nothing.
        return Evaluation(math.nan, math.nan)
    return Evaluation(right / images.count, loss / images.count)
