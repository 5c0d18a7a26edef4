"""The networks, layer by layer."""

from collections import OrderedDict
from typing import assert_never

from torch import Tensor, nn

from trainer.files import CLASSES
from trainer.hyperparameters import Eidf, Network, Resnet9, Small

KERNEL = 5
"""Edge of the small CNN's filters, in pixels."""
HIDDEN = 128
"""Units between the small CNN's filters and the classes."""


def build(network: Network, channels: int) -> nn.Sequential:
    """Return the network for images of so many channels, with fresh weights. It returns a score per class."""
    match network:
        case Small():
            return small_cnn(network.width, channels)
        case Eidf():
            return eidf_cnn(network, channels)
        case Resnet9():
            return resnet9(network, channels)
        case _:
            assert_never(network)


def small_cnn(width: int, channels: int) -> nn.Sequential:
    """Return the demo's CNN: two blocks of filters, two dense layers; 80,250 parameters at width 16."""
    return nn.Sequential(
        *_pooled_first(channels, width),
        *_pooled_first(width, 2 * width),
        nn.Flatten(),
        nn.Linear(2 * width * 4 * 4, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, CLASSES),
    )


def eidf_cnn(network: Eidf, channels: int) -> nn.Sequential:
    """Return PyTorch's MNIST example, its log-softmax moved to the loss: 1,199,882 parameters at width 32."""
    return nn.Sequential(
        nn.Conv2d(channels, network.width, 3),
        nn.ReLU(),
        nn.Conv2d(network.width, 2 * network.width, 3),
        # Pooling before ReLU leaves it a quarter of the pixels and gives the same numbers.
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Dropout(network.dropout),
        nn.Flatten(),
        nn.Linear(2 * network.width * 12 * 12, network.hidden),
        nn.ReLU(),
        nn.Dropout(network.hidden_dropout),
        nn.Linear(network.hidden, CLASSES),
    )


def resnet9(network: Resnet9, channels: int) -> nn.Sequential:
    """Return the ResNet-9: eight convolutions, 6,573,120 parameters at width 64 and 3 channels."""
    width, norm = network.width, network.batch_norm
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
            scale=Scale(network.logit_scale),
        )
    )


class Residual(nn.Module):
    """Two convolutions whose output is added to their input."""

    def __init__(self, width: int, *, norm: bool) -> None:
        super().__init__()
        self.first = _convolution(width, width, norm=norm)
        self.second = _convolution(width, width, norm=norm)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the input plus the output of both convolutions."""
        changes: Tensor = self.second(self.first(inputs))
        return inputs + changes


class Scale(nn.Module):
    """A constant factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, inputs: Tensor) -> Tensor:
        """Multiply the scores."""
        return inputs * self.factor


def _convolution(inputs: int, outputs: int, *, norm: bool, pool: bool = False) -> nn.Sequential:
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv=nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    )
    if norm:
        layers["norm"] = nn.BatchNorm2d(outputs)
    if pool:
        # The example pools after ReLU, which gives the same numbers from four times as many pixels.
        layers["pool"] = nn.MaxPool2d(2)
    layers["relu"] = nn.ReLU(inplace=True)
    return nn.Sequential(layers)


def _pooled_first(inputs: int, outputs: int) -> tuple[nn.Module, ...]:
    # Pooling first leaves normalization and ReLU a quarter of the pixels, which saves a third of the time.
    # Without normalization, two epochs of large batches learn nothing. It cancels the convolution's own bias.
    convolution = nn.Conv2d(inputs, outputs, KERNEL, bias=False)
    return convolution, nn.MaxPool2d(2), nn.BatchNorm2d(outputs), nn.ReLU()
