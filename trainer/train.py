"""The training: shuffled batches, cross entropy, SGD with Nesterov momentum under the schedule."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.hyperparameters import Hyperparameters
from trainer.schedule import learning_rate


@dataclass(frozen=True, slots=True)
class Epoch:
    """How one pass over the training images went."""

    number: int
    """From 1."""
    images: int
    """Seen in this epoch: fewer than there are if training diverged."""
    loss: float
    """Mean over the images, each at the moment it was seen; NaN if training diverged."""
    accuracy: float
    """Share of the images that were classified rightly at the moment they were seen."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Training:
    """What a training leaves besides the trained network: its epochs, in order."""

    epochs: tuple[Epoch, ...]

    @property
    def loss(self) -> float:
        """Give the last epoch's loss; NaN if training diverged."""
        return self.epochs[-1].loss

    @property
    def images(self) -> int:
        """Count the images seen in all epochs together."""
        return sum(epoch.images for epoch in self.epochs)

    @property
    def seconds(self) -> float:
        """Add up the time of all epochs."""
        return sum(epoch.seconds for epoch in self.epochs)


class Descent:
    """SGD with Nesterov momentum, L2 penalty and schedule; changes the parameters in place.

    By hand, because the first use of torch.optim loads torch's compiler: 1.5 s, more than a short trial.
    """

    def __init__(self, parameters: Iterable[Tensor], knobs: Hyperparameters, *, steps: int) -> None:
        self.parameters = tuple(parameters)
        self.velocities = tuple(torch.zeros_like(parameter) for parameter in self.parameters)
        self.knobs = knobs
        self.steps = steps
        self.taken = 0

    def step(self, loss: Tensor) -> None:
        """Go one step down the loss."""
        knobs = self.knobs
        gradients = torch.autograd.grad(loss, self.parameters)
        rate = learning_rate(self.taken, self.steps, peak=knobs.learning_rate, warmup=knobs.warmup)
        with torch.no_grad():
            for parameter, gradient, velocity in zip(
                self.parameters, gradients, self.velocities, strict=True
            ):
                slope = gradient.add(parameter, alpha=knobs.weight_decay)
                velocity.mul_(knobs.momentum).add_(slope)
                parameter.sub_(slope.add_(velocity, alpha=knobs.momentum), alpha=rate)
        self.taken += 1


def train(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    *,
    knobs: Hyperparameters,
    seed: int,
    report: Callable[[Epoch], None],
) -> Training:
    """Train the network in place; the seed orders the images. Ends early once a loss is not finite."""
    order = torch.Generator().manual_seed(seed)
    steps = knobs.epochs * math.ceil(len(images) / knobs.batch_size)
    descent = Descent(model.parameters(), knobs, steps=steps)
    epochs: list[Epoch] = []
    model.train()
    for number in range(1, knobs.epochs + 1):
        shuffled = torch.randperm(len(images), generator=order).to(images.device)
        batches = ((images[batch], labels[batch]) for batch in torch.split(shuffled, knobs.batch_size))
        epochs.append(_epoch(number, model, batches, descent))
        report(epochs[-1])
        if math.isnan(epochs[-1].loss):
            break
    return Training(tuple(epochs))


def _epoch(
    number: int, model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]], descent: Descent
) -> Epoch:
    started = time.perf_counter()
    loss_sum, right, seen = 0.0, 0, 0
    for inputs, targets in batches:
        logits = model(inputs)
        loss = functional.cross_entropy(logits, targets, label_smoothing=descent.knobs.label_smoothing)
        descent.step(loss)
        loss_sum += loss.item() * len(targets)
        right += int((logits.argmax(1) == targets).sum())
        seen += len(targets)
        if not math.isfinite(loss_sum):
            break
    mean = loss_sum / seen if math.isfinite(loss_sum) else math.nan
    return Epoch(number, seen, mean, right / seen, time.perf_counter() - started)
