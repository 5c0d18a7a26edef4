"""One trial from hyperparameters to result document: everything is put together here."""

import random
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from trainer import checkpoint, machine, result
from trainer.batches import Epochs, pictures
from trainer.checkpoint import Checkpoint, Keeper
from trainer.contract import (
    BAD_HYPERPARAMETERS,
    OUT_OF_MEMORY,
    STORAGE_FAILED,
    Problem,
    Surroundings,
    TrialError,
)
from trainer.group import Group
from trainer.hyperparameters import Knobs, Resnet9
from trainer.images import Dataset
from trainer.model import build, side_of
from trainer.progress import Epoch, History, Progress
from trainer.train import Setting, Training

Report = Callable[[list[Epoch]], None]
"""Called after each epoch, with all epochs up to it."""


def run(
    knobs: Knobs, dataset: Dataset, given: Surroundings, company: Group, report: Report
) -> dict[str, Any]:
    """Train and evaluate. Raises TrialError if the values do not fit the data or the machine."""
    check(knobs, dataset, company)
    computer = machine.prepare(given, knobs.running, company.local_rank)
    try:
        training = begin(knobs, dataset, given, computer, company)
        training.run(report)
    except (MemoryError, torch.cuda.OutOfMemoryError) as error:
        message = f"not enough memory for batch_size {knobs.network.batch_size} and this network"
        raise TrialError([Problem(str(computer.device), message, OUT_OF_MEMORY)]) from error
    return result.document(training, dataset, given)


def check(knobs: Knobs, dataset: Dataset, company: Group) -> None:
    """Refuse values that do not fit the images. Raises TrialError with all of them."""
    network, side = knobs.network, side_of(knobs.network)
    images = min(knobs.running.train_images or dataset.train.count, dataset.train.count)
    limits = [("batch_size", network.batch_size, images, "all training images")]
    if isinstance(network, Resnet9):
        limits.append(
            ("data_aug_cutout_size", network.data_aug_cutout_size, side, "pixels, the image's edge")
        )
        limits.append(("crop_padding", network.crop_padding, side - 1, "pixels, less than the image's edge"))
    problems = [
        Problem(f"--{name}", f"must be at most {most} ({of}), got {value}", BAD_HYPERPARAMETERS)
        for name, value, most, of in limits
        if value > most
    ]
    if network.batch_size < company.size:
        message = f"must be at least {company.size}, an image for each process, got {network.batch_size}"
        problems.append(Problem("--batch_size", message, BAD_HYPERPARAMETERS))
    if problems:
        raise TrialError(problems)


def begin(
    knobs: Knobs, dataset: Dataset, given: Surroundings, computer: machine.Machine, company: Group
) -> Training:
    """Put a training where it begins: at the first step, or where a checkpoint stands."""
    of = {
        "workload": knobs.workload,
        "network": knobs.name,
        "hyperparameters": asdict(knobs.network),
        "data": [dataset.digest, knobs.running.train_images],
        "seed": given.seed,
    }
    held, progress, history = start(of, given, company, computer.precision)
    network, device = knobs.network, computer.device
    # Made on the CPU, so every device starts from the same weights.
    model = build(network, dataset.train.channels).to(device)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing in torch's stubs
    wrapped = company.wrapped(model, device)
    train, test = (
        pictures(images, knobs.workload, side_of(network), device, most)
        for images, most in (
            (dataset.train, knobs.running.train_images),
            (dataset.test, knobs.running.test_images),
        )
    )
    setting = Setting(
        knobs,
        of,
        Epochs(train, network, seed_of(given.seed, history.leg), company.rank, company.size),
        test,
        computer,
        company,
        Keeper(given.checkpoints, knobs.running.checkpoint_every, writes=company.speaks),
    )
    fast = computer.compiled(wrapped, given.checkpoints) if knobs.running.compile else wrapped
    training = Training(setting, model, fast, history)
    if held:
        if not checkpoint.fits(held, model.state_dict(), training.optimizer.memory):
            raise checkpoint.misfit(given.parent or Path(checkpoint.FILE))
        training.go_on_from(held, progress)
    return training


def start(
    of: dict[str, Any], given: Surroundings, company: Group, precision: str
) -> tuple[Checkpoint | None, Progress, History]:
    """Find where to begin: at this trial's own checkpoint, else at its parent's, else at the first step.

    A trial that asks for more epochs than its parent goes on where the parent stood, to the end of its own
    schedule; one that asks for no more begins its schedule anew, from the parent's weights and memory.
    """
    fresh = History(precisions=(precision,))
    own = company.shared(checkpoint.read(given.checkpoints) if company.speaks else None)
    if own is not None and given.checkpoints:
        held = checkpoint.unpacked(own, given.checkpoints / checkpoint.FILE)
        if held.of == of:
            return held, held.progress, held.history.with_attempt(precision)
    if given.parent is None:
        return None, Progress(), fresh
    content = company.shared(checkpoint.read(given.parent) if company.speaks else None)
    if content is None:
        message = "must hold the parent's checkpoint, but holds none"
        raise TrialError([Problem(str(given.parent), message, STORAGE_FAILED)])
    held = checkpoint.unpacked(content, given.parent / checkpoint.FILE)
    if of["hyperparameters"]["epochs"] > held.of["hyperparameters"]["epochs"]:
        return held, Progress(epochs=held.progress.epochs), History(held.history.leg, 0, (precision,))
    return held, Progress(), History(held.history.leg + 1, 0, (precision,))


def seed_of(seed: int, leg: int) -> int:
    """Give the seed of a leg: one that begins anew sees its images in another order than its parent."""
    return random.Random(f"{seed}/{leg}").getrandbits(63) if leg else seed  # noqa: S311 no secret
