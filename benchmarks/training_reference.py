"""The same trainings as people first write them: fp32, NCHW, a DataLoader, transforms image by image.

    python benchmarks/training_reference.py resnet9|small|eidf FOLDER [--name=value …]

Networks, recipes and images are the trainer's; what differs is how they are run. Of the trainer it has the
reader of files alone, so that both see the same images. Prints one line of JSON.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, str(Path(__file__).parent.parent))

from trainer import data
from trainer.files import Images

Transform = Callable[[Tensor], Tensor]


class Pictures(Dataset[tuple[Tensor, int]]):
    """Images one at a time, each through its transforms."""

    def __init__(self, images: Images, count: int, transforms: list[Transform]) -> None:
        pixels = torch.frombuffer(bytearray(images.pixels), dtype=torch.uint8)
        self.pixels = pixels.view(-1, images.channels, images.side, images.side)
        self.labels = list(images.labels)
        self.kept = [number * images.count // count for number in range(count)]
        self.transforms = transforms

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.pixels[self.kept[index]].float() / 255
        for transform in self.transforms:
            image = transform(image)
        return image, self.labels[self.kept[index]]


class Normalize:
    """Mean and deviation of all pixels."""

    def __init__(self, mean: tuple[float, ...], deviation: tuple[float, ...]) -> None:
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.deviation = torch.tensor(deviation).view(-1, 1, 1)

    def __call__(self, image: Tensor) -> Tensor:
        return (image - self.mean) / self.deviation


class Pad:
    """A black frame."""

    def __init__(self, width: int, mode: str = "constant") -> None:
        self.width, self.mode = width, mode

    def __call__(self, image: Tensor) -> Tensor:
        return functional.pad(image[None], (self.width,) * 4, mode=self.mode)[0]


class Crop:
    """A square of an edge, anywhere."""

    def __init__(self, side: int) -> None:
        self.side = side

    def __call__(self, image: Tensor) -> Tensor:
        down = random.randint(0, image.shape[1] - self.side)  # noqa: S311 augmentation
        right = random.randint(0, image.shape[2] - self.side)  # noqa: S311
        return image[:, down : down + self.side, right : right + self.side]


class Flip:
    """Every other image, mirrored."""

    def __call__(self, image: Tensor) -> Tensor:
        return image.flip(2) if random.random() < 0.5 else image  # noqa: S311, PLR2004


class Cutout:
    """A square of zeros."""

    def __init__(self, side: int) -> None:
        self.side = side

    def __call__(self, image: Tensor) -> Tensor:
        image = image.clone()
        down = random.randint(0, image.shape[1] - self.side)  # noqa: S311
        right = random.randint(0, image.shape[2] - self.side)  # noqa: S311
        image[:, down : down + self.side, right : right + self.side] = 0
        return image


class Residual(nn.Module):
    """Two convolutions, added to what goes in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.both = nn.Sequential(convolution(width, width), convolution(width, width))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs + self.both(inputs)  # type: ignore[no-any-return]


class Scaled(nn.Module):
    """Scores times an eighth."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs * 0.125


def convolution(inputs: int, outputs: int, *, pool: bool = False) -> nn.Sequential:
    """Convolution, normalisation, ReLU, and a pool where the layer has one: the example's order."""
    layers = [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, *([nn.MaxPool2d(2)] if pool else []))


def resnet9(channels: int, width: int) -> nn.Sequential:
    """NVIDIA's network."""
    return nn.Sequential(
        convolution(channels, width),
        convolution(width, 2 * width, pool=True),
        Residual(2 * width),
        convolution(2 * width, 4 * width, pool=True),
        convolution(4 * width, 8 * width, pool=True),
        Residual(8 * width),
        nn.MaxPool2d(4),
        nn.Flatten(),
        nn.Linear(8 * width, 10, bias=False),
        Scaled(),
    )


def small(channels: int, width: int) -> nn.Sequential:
    """The demo's network."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((channels, width), (width, 2 * width)):
        layers += [
            nn.Conv2d(inputs, outputs, 5, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2 * width * 16, 128), nn.ReLU(), nn.Linear(128, 10))


def eidf(channels: int, width: int) -> nn.Sequential:
    """EIDF's network."""
    return nn.Sequential(
        nn.Conv2d(channels, width, 3),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(2 * width * 144, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 10),
    )


def transforms(network: str, workload: str, cutout: int) -> tuple[list[Transform], list[Transform]]:
    """Give what is done to training and to test images."""
    means = {"cifar10": ((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616))}
    grey = ((0.2860,), (0.3530,)) if workload == "fashion-mnist" else ((0.1307,), (0.3081,))
    plain: list[Transform] = [Normalize(*means.get(workload, grey))]
    if network != "resnet9":
        return plain, plain
    framed: list[Transform] = [] if workload == "cifar10" else [Pad(2)]
    return [*framed, Pad(4, "reflect"), *plain, Crop(32), Flip(), Cutout(cutout)], [*framed, *plain]


def optimised(
    model: nn.Module, steps: int, wanted: argparse.Namespace
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """Give the recipe's optimizer and its schedule, step by step."""
    if wanted.network == "eidf":
        adadelta = torch.optim.Adadelta(model.parameters(), lr=1.0)
        each = steps // wanted.epochs
        return adadelta, torch.optim.lr_scheduler.StepLR(adadelta, step_size=each, gamma=0.7)
    summed = wanted.network == "resnet9"
    warmup = 5 / 24 if summed else 0.2
    sgd = torch.optim.SGD(
        model.parameters(),
        lr=wanted.learning_rate / (wanted.batch_size if summed else 1),
        momentum=wanted.momentum,
        nesterov=True,
        weight_decay=5e-4 * (wanted.batch_size if summed else 1),
    )

    def share(step: int) -> float:
        progress = (step + 0.5) / steps
        return progress / warmup if progress < warmup else (1 - progress) / (1 - warmup)

    return sgd, torch.optim.lr_scheduler.LambdaLR(sgd, share)


def main() -> None:
    """Train and test, and say how long it took."""
    wanted = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(wanted.seed)
    random.seed(wanted.seed)
    dataset = data.load(wanted.workload, wanted.folder)
    for_training, for_test = transforms(wanted.network, wanted.workload, wanted.cutout)
    train = Pictures(dataset.train, wanted.train_images or dataset.train.count, for_training)
    test = Pictures(dataset.test, wanted.test_images or dataset.test.count, for_test)
    build = {"resnet9": resnet9, "small": small, "eidf": eidf}[wanted.network]
    model = build(dataset.train.channels, wanted.width)
    batches = DataLoader(train, wanted.batch_size, shuffle=True, drop_last=wanted.network == "resnet9")
    optimizer, schedule = optimised(model, wanted.epochs * len(batches), wanted)
    reduction = "sum" if wanted.network == "resnet9" else "mean"
    marks = []
    for _ in range(wanted.epochs):
        model.train()
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(inputs), targets, reduction=reduction)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            loss.item()
        marks.append(time.process_time())
    print(json.dumps(report(marks, len(batches) * wanted.batch_size, tested(model, test), wanted)))


@torch.no_grad()
def tested(model: nn.Module, test: Pictures) -> float:
    """Give the share of test images that are classified rightly."""
    model.eval()
    right = sum(int((model(inputs).argmax(1) == targets).sum()) for inputs, targets in DataLoader(test, 1000))
    return right / len(test)


def report(marks: list[float], images: int, accuracy: float, wanted: argparse.Namespace) -> dict[str, Any]:
    """Put together what is compared; the first epoch warms up."""
    steady = marks[-1] - marks[0]
    return {
        "accuracy": accuracy,
        "images_per_cpu_second": images * (wanted.epochs - 1) / steady if steady else None,
        "cpu_seconds": time.process_time(),
    }


def arguments() -> argparse.Namespace:
    """Read the command line; the defaults are the recipes'."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network", choices=["resnet9", "small", "eidf"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workload", default="mnist")
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--cutout", type=int, default=8)
    parser.add_argument("--train_images", type=int, default=0)
    parser.add_argument("--test_images", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
