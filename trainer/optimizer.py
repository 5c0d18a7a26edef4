"""How weights follow their gradients: Nesterov's SGD and Adadelta. Third-party: torch.

By hand, because the first use of torch.optim loads torch's compiler: 1.5 s, more than a short trial. The
functions with a leading underscore are those that torch.optim itself calls: one call for all weights, where a
loop would start hundreds of kernels a step on a GPU.
"""

from collections.abc import Iterable
from typing import assert_never

import torch
from torch import Tensor

from trainer.hyperparameters import Eidf, Network, Resnet9, Small


class Sgd:
    """SGD with Nesterov momentum and L2 penalty; changes the parameters in place."""

    def __init__(self, parameters: Iterable[Tensor], *, momentum: float, weight_decay: float) -> None:
        self.parameters = list(parameters)
        self.velocities = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.momentum, self.weight_decay = momentum, weight_decay

    @property
    def memory(self) -> list[Tensor]:
        """Give what it remembers from step to step, to be kept or overwritten in place."""
        return self.velocities

    @torch.no_grad()
    def step(self, gradients: list[Tensor], rate: float) -> None:
        """Go one step down."""
        slopes = torch._foreach_add(gradients, self.parameters, alpha=self.weight_decay)  # noqa: SLF001
        torch._foreach_mul_(self.velocities, self.momentum)
        torch._foreach_add_(self.velocities, slopes)
        torch._foreach_add_(slopes, self.velocities, alpha=self.momentum)
        torch._foreach_sub_(self.parameters, slopes, alpha=rate)


class Adadelta:
    """Adadelta with L2 penalty; changes the parameters in place."""

    def __init__(
        self, parameters: Iterable[Tensor], *, rho: float, epsilon: float, weight_decay: float
    ) -> None:
        self.parameters = list(parameters)
        self.slopes = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.moves = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.rho, self.epsilon, self.weight_decay = rho, epsilon, weight_decay

    @property
    def memory(self) -> list[Tensor]:
        """Give what it remembers from step to step, to be kept or overwritten in place."""
        return [*self.slopes, *self.moves]

    @torch.no_grad()
    def step(self, gradients: list[Tensor], rate: float) -> None:
        """Go one step down."""
        for parameter, gradient, slopes, moves in zip(
            self.parameters, gradients, self.slopes, self.moves, strict=True
        ):
            slope = gradient.add(parameter, alpha=self.weight_decay) if self.weight_decay else gradient
            slopes.mul_(self.rho).addcmul_(slope, slope, value=1 - self.rho)
            move = slope * (moves.add(self.epsilon).div_(slopes.add(self.epsilon)).sqrt_())
            moves.mul_(self.rho).addcmul_(move, move, value=1 - self.rho)
            parameter.sub_(move, alpha=rate)


Optimizer = Sgd | Adadelta


def optimizer(knobs: Network, parameters: Iterable[Tensor]) -> Optimizer:
    """Make a network's own."""
    match knobs:
        case Small():
            return Sgd(parameters, momentum=knobs.momentum, weight_decay=knobs.weight_decay)
        case Resnet9():
            # The loss is summed over the batch, so the decay is, too.
            decay = knobs.weight_decay * knobs.batch_size
            return Sgd(parameters, momentum=knobs.momentum, weight_decay=decay)
        case Eidf():
            return Adadelta(parameters, rho=knobs.rho, epsilon=knobs.epsilon, weight_decay=knobs.weight_decay)
        case _:
            assert_never(knobs)
