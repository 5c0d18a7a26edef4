"""How good a trained network is on images it has not seen."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from trainer.batches import Pictures
from trainer.group import Group
from trainer.machine import Machine

AT_ONCE = 1000
"""Images a pass: bounds the memory; the result is the same for any number but for rounding."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Means over the images."""

    accuracy: float
    loss: float


@torch.inference_mode()
def evaluate(
    model: nn.Module,
    pictures: Pictures,
    machine: Machine,
    group: Group = Group(),  # noqa: B008 frozen
    look: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Classify all images; the network is left in evaluation mode. Looks up after each pass."""
    model.eval()
    group.aligned(model)
    sums = torch.zeros(2, dtype=torch.float64, device=machine.device)
    everything = torch.arange(pictures.count, device=machine.device)[group.rank :: group.size]
    for some in torch.split(everything, AT_ONCE):
        with machine.arithmetic():
            scores = model(pictures.normalised(pictures.pixels[some]))
        labels = pictures.labels[some]
        sums[0] += functional.cross_entropy(scores.float(), labels, reduction="sum")
        sums[1] += (scores.argmax(1) == labels).sum()
        look()
    loss, right = group.summed(sums).tolist()
    if not math.isfinite(loss):
        # What was measured on a wreck is no measurement.
        return Evaluation(math.nan, math.nan)
    return Evaluation(right / pictures.count, loss / pictures.count)
