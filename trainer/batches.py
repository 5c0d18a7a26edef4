"""Images on the device as the bytes that they are; each batch is cropped, mirrored, cut and normalised whole.

Nothing is copied, padded or augmented ahead: a crop of a padded image is a map of indices into the image.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

import torch
from torch import Tensor
from torch.nn import functional

from trainer.hyperparameters import Eidf, Network, Resnet9, Small
from trainer.images import Images

STATISTICS = {
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616)),
    "fashion-mnist": ((0.2860,), (0.3530,)),
    "mnist": ((0.1307,), (0.3081,)),
    "mnist-5k": ((0.1307,), (0.3081,)),
}
"""Mean and deviation of each channel over a workload's whole training images, with 1 as white."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """All images of one kind, on the device."""

    pixels: Tensor
    """A byte each: count x channels x side x side."""
    labels: Tensor
    mean: Tensor
    deviation: Tensor

    @property
    def count(self) -> int:
        """Count them."""
        return len(self.labels)

    def normalised(self, pixels: Tensor) -> Tensor:
        """Make numbers of bytes; channels come last in memory, as the fast kernels want them."""
        inputs = pixels.contiguous(memory_format=torch.channels_last).float()
        return inputs.div_(255).sub_(self.mean).div_(self.deviation)


@dataclass(frozen=True, slots=True)
class Changes:
    """What an epoch does to each image; drawn once an epoch, for all of them."""

    offsets: Tensor
    """2 x count: by how many pixels the crop lies below and right of the image."""
    mirrored: Tensor
    holes: Tensor
    """2 x count: where the square that is cut out begins."""
    hole: int
    """Its edge, in pixels."""

    def applied(self, pictures: Pictures, batch: Tensor) -> Tensor:
        """Crop, mirror, normalise, cut: what is cut has the mean colour, as in the example."""
        chosen = pictures.pixels[batch]
        count, channels, side, _ = chosen.shape
        along = torch.arange(side, device=chosen.device)
        rows, columns = (_reflected(offset[batch, None] + along, side) for offset in self.offsets)
        columns = torch.where(self.mirrored[batch, None], columns.flip(1), columns)
        places = (rows[:, :, None] * side + columns[:, None, :]).view(count, 1, -1)
        cropped = chosen.view(count, channels, -1).gather(2, places.expand(-1, channels, -1))
        inputs = pictures.normalised(cropped.view(chosen.shape))
        if self.hole:
            down, right = (_within(start[batch, None], self.hole, along) for start in self.holes)
            inputs.masked_fill_(down[:, None, :, None] & right[:, None, None, :], 0.0)
        return inputs


@dataclass(frozen=True, slots=True)
class Epochs:
    """The batches of every epoch, a function of the seed and of nothing else."""

    pictures: Pictures
    knobs: Network
    seed: int
    part: int = 0
    """Which share of each batch this process has."""
    parts: int = 1
    """How many processes share the batches."""

    @property
    def steps(self) -> int:
        """Count the batches of an epoch. A last one that is too small to be shared by all is dropped."""
        whole, rest = divmod(self.pictures.count, self.knobs.batch_size)
        return whole if isinstance(self.knobs, Resnet9) or rest < self.parts else whole + 1

    def size(self, step: int) -> int:
        """Count the images of a step, in all processes together."""
        return min(self.knobs.batch_size, self.pictures.count - step * self.knobs.batch_size)

    def __iter__(self) -> Iterator["Pass"]:
        order = torch.Generator().manual_seed(self.seed)
        while True:
            shuffled = torch.randperm(self.pictures.count, generator=order)
            yield Pass(self, shuffled.to(self.pictures.labels.device), self._changes(order))

    def _changes(self, order: torch.Generator) -> Changes | None:
        match self.knobs:
            case Small() | Eidf():
                return None
            case Resnet9(crop_padding=padding, data_aug_cutout_size=hole, flip=flip):
                count, side = self.pictures.count, self.pictures.pixels.shape[-1]
                device = self.pictures.pixels.device
                return Changes(
                    torch.randint(-padding, padding + 1, (2, count), generator=order).to(device),
                    (torch.rand(count, generator=order) < flip).to(device),
                    torch.randint(0, side - hole + 1, (2, count), generator=order).to(device),
                    hole,
                )
            case _:
                assert_never(self.knobs)


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the images."""

    of: Epochs
    order: Tensor
    changes: Changes | None

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Give a step's images and classes, as far as they are this process's."""
        pictures, size = self.of.pictures, self.of.knobs.batch_size
        batch = self.order[step * size : (step + 1) * size][self.of.part :: self.of.parts]
        if self.changes is None:
            return pictures.normalised(pictures.pixels[batch]), pictures.labels[batch]
        return self.changes.applied(pictures, batch), pictures.labels[batch]


def pictures(given: Images, workload: str, side: int, device: torch.device, most: int = 0) -> Pictures:
    """Put images on the device, in a black frame where the network takes larger ones.

    Where fewer are asked for, they lie evenly among all: files may be sorted by class.
    """
    with warnings.catch_warnings():
        # The bytes may be pages that all trials of a node share, which torch would rather write to.
        warnings.simplefilter("ignore", UserWarning)
        pixels = torch.frombuffer(given.pixels, dtype=torch.uint8)
        labels = torch.frombuffer(given.labels, dtype=torch.uint8)
    pixels = pixels.view(-1, given.channels, given.side, given.side)
    if 0 < most < given.count:
        chosen = torch.arange(most) * given.count // most
        pixels, labels = pixels[chosen], labels[chosen]
    frame = (side - given.side) // 2
    if frame:
        pixels = functional.pad(pixels, (frame, frame, frame, frame))
    mean, deviation = (torch.tensor(each, device=device).view(1, -1, 1, 1) for each in STATISTICS[workload])
    return Pictures(pixels.to(device), labels.to(device).long(), mean, deviation)


def _reflected(places: Tensor, side: int) -> Tensor:
    """Turn back what lies beyond an edge."""
    return (side - 1) - ((side - 1) - places.abs()).abs()


def _within(start: Tensor, length: int, along: Tensor) -> Tensor:
    return (start <= along) & (along < start + length)
