"""How weights follow their gradients: the learning rate of each step, SGD with Nesterov momentum, Adadelta.

The optimizers are written by hand because the first use of torch.optim loads torch's compiler, which takes
1.5 s, longer than a short trial. They call the same underscored functions as torch.optim: one call for all
weights, where a loop would start hundreds of kernels per step on a GPU.
"""

from collections.abc import Iterable
from typing import assert_never

import torch
from torch import Tensor

from trainer import hyperparameters
from trainer.hyperparameters import Staircase, Triangle


def learning_rate(recipe: hyperparameters.Recipe, step: int, *, steps_per_epoch: int) -> float:
    """Return the learning rate of a step. Steps are counted from 0 over all epochs."""
    match recipe.schedule:
        case Triangle():
            progress = (step + recipe.schedule.sampled_at) / (recipe.epochs * steps_per_epoch)
            return triangle(progress, recipe.schedule)
        case Staircase():
            return staircase(step // steps_per_epoch, recipe.schedule)
        case _:
            assert_never(recipe.schedule)


def triangle(progress: float, schedule: Triangle) -> float:
    """Return the rate after a fraction of all steps."""
    if progress < schedule.warmup:
        return schedule.peak * progress / schedule.warmup
    return schedule.peak * (1 - progress) / (1 - schedule.warmup)


def staircase(epoch: int, schedule: Staircase) -> float:
    """Return the rate of an epoch. Epochs are counted from 0."""
    return float(schedule.initial * schedule.factor ** (epoch // schedule.epochs))


class Sgd:
    """SGD with Nesterov momentum and an L2 penalty; changes the parameters in place."""

    def __init__(self, parameters: Iterable[Tensor], settings: hyperparameters.Sgd) -> None:
        self.parameters = list(parameters)
        self.velocities = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.momentum, self.weight_decay = settings.momentum, settings.weight_decay

    @property
    def state(self) -> list[Tensor]:
        """The tensors that a checkpoint saves; restore them in place."""
        return self.velocities

    @torch.no_grad()
    def step(self, gradients: list[Tensor], rate: float) -> None:
        """Take one step down the gradients."""
        slopes = torch._foreach_add(gradients, self.parameters, alpha=self.weight_decay)  # noqa: SLF001
        torch._foreach_mul_(self.velocities, self.momentum)
        torch._foreach_add_(self.velocities, slopes)
        torch._foreach_add_(slopes, self.velocities, alpha=self.momentum)
        torch._foreach_sub_(self.parameters, slopes, alpha=rate)


class Adadelta:
    """Adadelta with an L2 penalty; changes the parameters in place."""

    def __init__(self, parameters: Iterable[Tensor], settings: hyperparameters.Adadelta) -> None:
        self.parameters = list(parameters)
        self.slopes = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.moves = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.settings = settings

    @property
    def state(self) -> list[Tensor]:
        """The tensors that a checkpoint saves; restore them in place."""
        return [*self.slopes, *self.moves]

    @torch.no_grad()
    def step(self, gradients: list[Tensor], rate: float) -> None:
        """Take one step down the gradients."""
        rho, epsilon, decay = self.settings.rho, self.settings.epsilon, self.settings.weight_decay
        for parameter, gradient, slopes, moves in zip(
            self.parameters, gradients, self.slopes, self.moves, strict=True
        ):
            slope = gradient.add(parameter, alpha=decay) if decay else gradient
            slopes.mul_(rho).addcmul_(slope, slope, value=1 - rho)
            move = slope * (moves.add(epsilon).div_(slopes.add(epsilon)).sqrt_())
            moves.mul_(rho).addcmul_(move, move, value=1 - rho)
            parameter.sub_(move, alpha=rate)


Optimizer = Sgd | Adadelta


def optimizer(
    settings: hyperparameters.Sgd | hyperparameters.Adadelta, parameters: Iterable[Tensor]
) -> Optimizer:
    """Return the optimizer of a recipe."""
    match settings:
        case hyperparameters.Sgd():
            return Sgd(parameters, settings)
        case hyperparameters.Adadelta():
            return Adadelta(parameters, settings)
        case _:
            assert_never(settings)
