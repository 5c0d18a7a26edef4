"""The network, and digits in the form in which it sees them."""

import torch
from torch import Tensor, nn

from trainer.images import CLASSES, Images

MEAN, DEVIATION = 0.1307, 0.3081
"""Of all pixels of MNIST's 60,000 training images, with 1 as white."""
SIDE = 28
"""Pixels, of a digit's edge."""
KERNEL = 5
HIDDEN = 128
"""Units between the filters and the classes."""


def small_cnn(width: int) -> nn.Sequential:
    """Two blocks of 5x5 filters and two full layers: 80,250 parameters at width 16."""
    side = (SIDE - KERNEL + 1) // 2
    side = (side - KERNEL + 1) // 2
    return nn.Sequential(
        *_block(1, width),
        *_block(width, 2 * width),
        nn.Flatten(),
        nn.Linear(2 * width * side * side, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, CLASSES),
    )


def tensors(given: Images, device: torch.device) -> tuple[Tensor, Tensor]:
    """Give normalised images (count x channels x side x side, channels last) and classes, on the device."""
    # bytearray: torch warns about memory that it may not write to
    pixels = torch.frombuffer(bytearray(given.pixels), dtype=torch.uint8).view(
        -1, given.channels, given.side, given.side
    )
    images = pixels.to(device).float().div_(255).sub_(MEAN).div_(DEVIATION)
    labels = torch.frombuffer(bytearray(given.labels), dtype=torch.uint8)
    return images.contiguous(memory_format=torch.channels_last), labels.to(device).long()


def _block(inputs: int, outputs: int) -> tuple[nn.Module, ...]:
    # Pooling first leaves normalisation and ReLU a quarter of the pixels: a third of the time saved.
    # Normalisation is what lets two epochs of big batches learn at all. The convolution's own bias
    # would be taken out again by it.
    convolution = nn.Conv2d(inputs, outputs, KERNEL, bias=False)
    return convolution, nn.MaxPool2d(2), nn.BatchNorm2d(outputs), nn.ReLU()
