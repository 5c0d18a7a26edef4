"""Batches of images on the device; each batch is cropped, mirrored, cut and normalized as a whole.

Images stay bytes, and nothing is copied, padded or augmented in advance: a crop of a padded image is a map of
indices into the image.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from trainer.files import Images
from trainer.hyperparameters import Augmentation, Recipe

STATISTICS = {
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616)),
    "fashion-mnist": ((0.2860,), (0.3530,)),
    "mnist": ((0.1307,), (0.3081,)),
    "mnist-5k": ((0.1307,), (0.3081,)),
}
"""Mean and standard deviation per channel of a workload's complete training images, with 1 as white."""


@dataclass(frozen=True, slots=True)
class ImageTensors:
    """All images for training, or all for testing, on the device."""

    pixels: Tensor
    """Bytes: count x channels x side x side."""
    labels: Tensor
    mean: Tensor
    deviation: Tensor

    @property
    def count(self) -> int:
        """The number of images."""
        return len(self.labels)

    def normalized(self, pixels: Tensor) -> Tensor:
        """Convert bytes to numbers; channels come last in memory, as the fast kernels require."""
        inputs = pixels.contiguous(memory_format=torch.channels_last).float()
        return inputs.div_(255).sub_(self.mean).div_(self.deviation)


@dataclass(frozen=True, slots=True)
class Changes:
    """The random changes of every image in one epoch, drawn for all images at once."""

    offsets: Tensor
    """2 x count: by how many pixels the crop is below and to the right of the image."""
    mirrored: Tensor
    holes: Tensor
    """2 x count: top left corner of the square that is cut out."""
    hole: int
    """Edge of that square, in pixels."""

    def apply(self, images: ImageTensors, batch: Tensor) -> Tensor:
        """Crop, mirror, normalize and cut a batch; the hole has the mean color, as in NVIDIA's example."""
        chosen = images.pixels[batch]
        count, channels, side, _ = chosen.shape
        along = torch.arange(side, device=chosen.device)
        rows, columns = (_reflect(offset[batch, None] + along, side) for offset in self.offsets)
        columns = torch.where(self.mirrored[batch, None], columns.flip(1), columns)
        indices = (rows[:, :, None] * side + columns[:, None, :]).view(count, 1, -1)
        cropped = chosen.view(count, channels, -1).gather(2, indices.expand(-1, channels, -1))
        inputs = images.normalized(cropped.view(chosen.shape))
        if self.hole:
            down, right = (_within(start[batch, None], self.hole, along) for start in self.holes)
            inputs.masked_fill_(down[:, None, :, None] & right[:, None, None, :], 0.0)
        return inputs


@dataclass(frozen=True, slots=True)
class Epochs:
    """The batches of every epoch; they depend on the seed and on nothing else."""

    images: ImageTensors
    recipe: Recipe
    seed: int
    rank: int = 0
    """The process's share of each batch."""
    processes: int = 1
    """The number of processes that share the batches."""

    @property
    def steps(self) -> int:
        """Batches per epoch. A last batch that is too small to share among all processes is dropped."""
        whole, rest = divmod(self.images.count, self.recipe.batch_size)
        return whole if self.recipe.drops_partial_batch or rest < self.processes else whole + 1

    def size(self, step: int) -> int:
        """Images per step, in all processes together."""
        return min(self.recipe.batch_size, self.images.count - step * self.recipe.batch_size)

    def __iter__(self) -> Iterator["Pass"]:
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            order = torch.randperm(self.images.count, generator=generator).to(self.images.labels.device)
            augmentation = self.recipe.augmentation
            changes = draw_changes(augmentation, self.images, generator=generator) if augmentation else None
            yield Pass(self, order, changes)


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the images: their order and their random changes."""

    epochs: Epochs
    order: Tensor
    changes: Changes | None

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Return this process's share of a step's images and classes."""
        images, size = self.epochs.images, self.epochs.recipe.batch_size
        batch = self.order[step * size : (step + 1) * size][self.epochs.rank :: self.epochs.processes]
        if self.changes is None:
            return images.normalized(images.pixels[batch]), images.labels[batch]
        return self.changes.apply(images, batch), images.labels[batch]


def draw_changes(augmentation: Augmentation, images: ImageTensors, *, generator: torch.Generator) -> Changes:
    """Draw the changes of one epoch."""
    count, side, device = images.count, images.pixels.shape[-1], images.pixels.device
    padding, hole = augmentation.crop_padding, augmentation.cutout_size
    return Changes(
        torch.randint(-padding, padding + 1, (2, count), generator=generator).to(device),
        (torch.rand(count, generator=generator) < augmentation.flip).to(device),
        torch.randint(0, side - hole + 1, (2, count), generator=generator).to(device),
        hole,
    )


def to_tensors(
    images: Images, workload: str, *, side: int, device: torch.device, limit: int = 0
) -> ImageTensors:
    """Put images on the device, in a black frame if the network takes larger ones.

    With a limit, images are taken evenly from all of them, because files may be sorted by class.
    """
    with warnings.catch_warnings():
        # torch warns that the bytes are read-only; they may be pages that all trials of a node share.
        warnings.simplefilter("ignore", UserWarning)
        pixels = torch.frombuffer(images.pixels, dtype=torch.uint8)
        labels = torch.frombuffer(images.labels, dtype=torch.uint8)
    pixels = pixels.view(-1, images.channels, images.side, images.side)
    if 0 < limit < images.count:
        chosen = torch.arange(limit) * images.count // limit
        pixels, labels = pixels[chosen], labels[chosen]
    frame = (side - images.side) // 2
    if frame:
        pixels = functional.pad(pixels, (frame, frame, frame, frame))
    mean, deviation = (torch.tensor(each, device=device).view(1, -1, 1, 1) for each in STATISTICS[workload])
    return ImageTensors(pixels.to(device), labels.to(device).long(), mean, deviation)


def _reflect(indices: Tensor, side: int) -> Tensor:
    """Mirror indices beyond an edge back into the image."""
    return (side - 1) - ((side - 1) - indices.abs()).abs()


def _within(start: Tensor, length: int, along: Tensor) -> Tensor:
    return (start <= along) & (along < start + length)
