"""The networks, and the size of image that each takes. See `python -m trainer … --describe`."""

from collections import OrderedDict
from typing import assert_never

from torch import Tensor, nn

from trainer.hyperparameters import Eidf, Network, Resnet9, Small
from trainer.images import CLASSES

KERNEL = 5
"""Pixels, the edge of the small CNN's filters."""
HIDDEN = 128
"""Units between the small CNN's filters and the classes."""


def build(knobs: Network, channels: int) -> nn.Sequential:
    """Make the network for images of so many channels, with fresh weights. It gives a score a class."""
    match knobs:
        case Small():
            return small_cnn(knobs.width, channels)
        case Eidf():
            return eidf_cnn(knobs, channels)
        case Resnet9():
            return resnet9(knobs, channels)
        case _:
            assert_never(knobs)


def side_of(knobs: Network) -> int:
    """Give the edge of the images that the network takes, in pixels; smaller ones get a black frame."""
    return 32 if isinstance(knobs, Resnet9) else 28


def small_cnn(width: int, channels: int) -> nn.Sequential:
    """Two blocks of 5x5 filters and two full layers: 80,250 parameters at width 16."""
    return nn.Sequential(
        *_pooled_first(channels, width),
        *_pooled_first(width, 2 * width),
        nn.Flatten(),
        nn.Linear(2 * width * 4 * 4, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, CLASSES),
    )


def eidf_cnn(knobs: Eidf, channels: int) -> nn.Sequential:
    """PyTorch's MNIST example: 1,199,882 parameters at width 32. Its log-softmax is part of the loss."""
    return nn.Sequential(
        nn.Conv2d(channels, knobs.width, 3),
        nn.ReLU(),
        nn.Conv2d(knobs.width, 2 * knobs.width, 3),
        # Pooled first, ReLU has a quarter of the pixels; the largest of them stays the largest.
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Dropout(knobs.dropout),
        nn.Flatten(),
        nn.Linear(2 * knobs.width * 12 * 12, knobs.hidden),
        nn.ReLU(),
        nn.Dropout(knobs.hidden_dropout),
        nn.Linear(knobs.hidden, CLASSES),
    )


def resnet9(knobs: Resnet9, channels: int) -> nn.Sequential:
    """Eight convolutions, four of them in residual blocks: 6,573,120 parameters at width 64, 3 channels."""
    width, norm = knobs.width, knobs.batch_norm
    return nn.Sequential(
        OrderedDict(
            prep=_convolution(channels, width, norm=norm),
            layer1=_convolution(width, 2 * width, norm=norm, pool=True),
            residual1=Residual(2 * width, norm=norm),
            layer2=_convolution(2 * width, 4 * width, norm=norm, pool=True),
            layer3=_convolution(4 * width, 8 * width, norm=norm, pool=True),
            residual3=Residual(8 * width, norm=norm),
            pool=nn.MaxPool2d(4),
            flatten=nn.Flatten(),
            linear=nn.Linear(8 * width, CLASSES, bias=False),
            scale=Scale(knobs.logit_scale),
        )
    )


class Residual(nn.Module):
    """Two convolutions whose outcome is added to what went into them."""

    def __init__(self, width: int, *, norm: bool) -> None:
        super().__init__()
        self.first = _convolution(width, width, norm=norm)
        self.second = _convolution(width, width, norm=norm)

    def forward(self, inputs: Tensor) -> Tensor:
        """Add what the block has learnt to change."""
        changes: Tensor = self.second(self.first(inputs))
        return inputs + changes


class Scale(nn.Module):
    """A constant factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, inputs: Tensor) -> Tensor:
        """Multiply."""
        return inputs * self.factor


def _convolution(inputs: int, outputs: int, *, norm: bool, pool: bool = False) -> nn.Sequential:
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv=nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    )
    if norm:
        layers["norm"] = nn.BatchNorm2d(outputs)
    if pool:
        # The example pools behind ReLU: the same numbers, of four times as many.
        layers["pool"] = nn.MaxPool2d(2)
    layers["relu"] = nn.ReLU(inplace=True)
    return nn.Sequential(layers)


def _pooled_first(inputs: int, outputs: int) -> tuple[nn.Module, ...]:
    # Pooling first leaves normalisation and ReLU a quarter of the pixels: a third of the time saved.
    # Normalisation is what lets two epochs of big batches learn at all. The convolution's own bias
    # would be taken out again by it.
    convolution = nn.Conv2d(inputs, outputs, KERNEL, bias=False)
    return convolution, nn.MaxPool2d(2), nn.BatchNorm2d(outputs), nn.ReLU()
