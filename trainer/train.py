"""The training: one step down the loss per batch, a test after each epoch, checkpoints in between.

The recipe of the network decides what a step does; no code here knows which network it trains.
"""

import math
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from trainer import checkpoint
from trainer.batches import Epochs, ImageTensors, Pass, to_tensors
from trainer.checkpoint import Checkpoint, EpochMetrics, History, Progress, Saver, StoppedError
from trainer.compute import Device, Group, set_up_device
from trainer.contract import (
    BAD_HYPERPARAMETERS,
    OUT_OF_MEMORY,
    STORAGE_FAILED,
    Environment,
    Problem,
    TrialError,
)
from trainer.evaluate import evaluate
from trainer.files import Dataset, Images
from trainer.hyperparameters import Configuration
from trainer.model import build
from trainer.schedule import learning_rate, optimizer

Report = Callable[[list[EpochMetrics]], None]
"""Called after each epoch, with the metrics of all epochs so far."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What is trained, on which data, and where."""

    configuration: Configuration
    dataset: Dataset
    environment: Environment
    device: Device
    group: Group

    @property
    def identity(self) -> dict[str, Any]:
        """What distinguishes this training from others: attempts with equal identities resume each other."""
        network, options = self.configuration.network, self.configuration.options
        return {
            "workload": self.configuration.workload,
            "network": network.name,
            "hyperparameters": asdict(network),
            "data": [self.dataset.digest, options.train_images],
            "seed": self.environment.seed,
        }


def train(
    configuration: Configuration,
    dataset: Dataset,
    *,
    environment: Environment,
    group: Group,
    report: Report,
) -> "Training":
    """Train a network to its last epoch, and return the training.

    Raises TrialError if the values do not fit the data or the machine, or if training is stopped.
    """
    check(configuration, dataset, group=group)
    device = set_up_device(environment, configuration.options, local_rank=group.local_rank)
    try:
        training = begin(Setup(configuration, dataset, environment, device, group))
        training.run(report)
    except (MemoryError, torch.cuda.OutOfMemoryError) as error:
        message = f"not enough memory for batch_size {configuration.network.batch_size} and this network"
        raise TrialError([Problem(str(device.device), message, OUT_OF_MEMORY)]) from error
    return training


def check(configuration: Configuration, dataset: Dataset, *, group: Group) -> None:
    """Check that the values fit the images and the processes. Raises TrialError with every problem."""
    recipe = configuration.network.recipe
    images = min(configuration.options.train_images or dataset.train.count, dataset.train.count)
    limits = [("batch_size", recipe.batch_size, images, "all training images")]
    if recipe.augmentation:
        cutout, padding, side = (
            recipe.augmentation.cutout_size,
            recipe.augmentation.crop_padding,
            recipe.image_size,
        )
        limits.append(("data_aug_cutout_size", cutout, side, "pixels, the image's edge"))
        limits.append(("crop_padding", padding, side - 1, "pixels, less than the image's edge"))
    problems = [
        Problem(f"--{name}", f"must be at most {most} ({what}), got {value}", BAD_HYPERPARAMETERS)
        for name, value, most, what in limits
        if value > most
    ]
    if recipe.batch_size < group.size:
        message = f"must be at least {group.size}, one image per process, got {recipe.batch_size}"
        problems.append(Problem("--batch_size", message, BAD_HYPERPARAMETERS))
    if problems:
        raise TrialError(problems)


def begin(setup: Setup) -> "Training":
    """Return a training at its starting point: the first step, or that of a checkpoint."""
    saved, progress, history = starting_point(setup)
    training = Training(setup, history)
    if saved:
        if not saved.fits(training.model.state_dict(), training.optimizer.state):
            raise checkpoint.misfit(setup.environment.parent or Path(checkpoint.FILE))
        training.restore(saved, progress)
    return training


def starting_point(setup: Setup) -> tuple[Checkpoint | None, Progress, History]:
    """Return where to start: this trial's own checkpoint, else its parent's, else nothing.

    A trial with more epochs than its parent continues after the parent's last epoch, to the end of its own
    schedule. Any other trial starts its schedule anew, with the parent's weights and optimizer state.
    """
    environment, group, precision = setup.environment, setup.group, setup.device.precision
    content = group.broadcast(checkpoint.read(environment.checkpoints) if group.is_writer else None)
    if content is not None and environment.checkpoints:
        saved = checkpoint.from_bytes(content, environment.checkpoints / checkpoint.FILE)
        if saved.identity == setup.identity:
            return saved, saved.progress, saved.history.resume(precision)
    if environment.parent is None:
        return None, Progress(), History(precisions=(precision,))
    content = group.broadcast(checkpoint.read(environment.parent) if group.is_writer else None)
    if content is None:
        message = "must hold the parent's checkpoint, but has none"
        raise TrialError([Problem(str(environment.parent), message, STORAGE_FAILED)])
    saved = checkpoint.from_bytes(content, environment.parent / checkpoint.FILE)
    if setup.configuration.network.epochs > saved.identity["hyperparameters"]["epochs"]:
        history = History(saved.history.leg, 0, (precision,))
        return saved, Progress(epochs=saved.progress.epochs), history
    return saved, Progress(), History(saved.history.leg + 1, 0, (precision,))


def leg_seed(seed: int, leg: int) -> int:
    """Return the seed of a leg: a training that starts anew sees its images in a different order."""
    return random.Random(f"{seed}/{leg}").getrandbits(63) if leg else seed  # noqa: S311 not a secret


class Training:
    """A network in training: its weights, its optimizer, its progress."""

    def __init__(self, setup: Setup, history: History) -> None:
        self.setup = setup
        self.history = history
        self.progress = Progress()
        self.first_step_seconds = 0.0
        """CPU time of the process when it completed its first step."""
        network, options = setup.configuration.network, setup.configuration.options
        self.recipe = network.recipe
        # Built on the CPU, so that every device starts from the same weights.
        self.model = build(network, setup.dataset.train.channels).to(setup.device.device)
        self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # not in torch's stubs
        self.optimizer = optimizer(self.recipe.optimizer, self.model.parameters())
        self.network = setup.group.wrap(self.model, setup.device.device)
        """The model, with its gradients averaged over all processes."""
        self.epochs = Epochs(
            self._tensors(setup.dataset.train, options.train_images),
            self.recipe,
            leg_seed(setup.environment.seed, history.leg),
            setup.group.rank,
            setup.group.size,
        )
        self.test = self._tensors(setup.dataset.test, options.test_images)
        self.saver = Saver(
            setup.environment.checkpoints, options.checkpoint_every, writes=setup.group.is_writer
        )

    def run(self, report: Report) -> None:
        """Train from the starting point to the last epoch. Ends early if the loss is no longer finite."""
        options, last = self.setup.configuration.options, self.recipe.epochs
        # Completed epochs are drawn too, so that what is seen depends only on the seed, not on the start.
        for number, images in zip(range(1, last + 1), self.epochs, strict=False):
            if number <= len(self.progress.epochs):
                continue
            self._train_epoch(images)
            is_due = number % options.test_every == 0 or number == last or self.progress.diverged
            self.progress.close(self._evaluate() if is_due else None)
            report(self.progress.epochs)
            if self.progress.epochs[-1].diverged:
                return
        self.saver.save(self.checkpoint())

    def checkpoint(self) -> Checkpoint:
        """Return everything that is needed to resume here."""
        return Checkpoint(
            self.setup.identity,
            self.history,
            self.progress,
            self.model.state_dict(),
            self.optimizer.state,
        )

    @torch.no_grad()
    def restore(self, saved: Checkpoint, progress: Progress) -> None:
        """Take over weights and optimizer state, and continue at the given progress."""
        self.model.load_state_dict(saved.weights)
        for mine, theirs in zip(self.optimizer.state, saved.state, strict=True):
            mine.copy_(theirs)
        self.progress = progress

    def _train_epoch(self, images: Pass) -> None:
        self.model.train()
        device, steps = self.setup.device, self.epochs.steps
        started = time.perf_counter() - self.progress.seconds
        sums = torch.zeros(4, dtype=torch.float64, device=device.device)
        for step in range(self.progress.step, steps):
            sums[:3] += self._step(images, step)
            self.progress.step = step + 1
            self.first_step_seconds = self.first_step_seconds or time.process_time()
            if self.progress.step % device.sync_interval and self.progress.step != steps:
                continue
            self.progress.seconds = time.perf_counter() - started
            self._sync(sums)
            if self.progress.diverged:
                return

    def _step(self, images: Pass, step: int) -> Tensor:
        """Take one step down the loss. Returns the sums of the loss, the correct images, and the images."""
        inputs, targets = images.batch(step)
        if self.recipe.random_layers:
            self._reseed(step)
        with self.setup.device.arithmetic():
            scores = self.network(inputs)
        loss = functional.cross_entropy(
            scores.float(), targets, label_smoothing=self.recipe.label_smoothing, reduction="sum"
        )
        divisor = 1 if self.recipe.sums_loss else self.epochs.size(step)
        # The gradients of the processes are averaged, but belong to one loss.
        (loss * (self.setup.group.size / divisor)).backward()  # type: ignore[no-untyped-call]
        self._descend(step)
        right = (scores.argmax(1) == targets).sum()
        return torch.stack(
            [loss.detach().double(), right.double(), torch.full_like(right, len(targets)).double()]
        )

    def _descend(self, step: int) -> None:
        steps = self.epochs.steps
        completed = len(self.progress.epochs) * steps + step
        rate = learning_rate(self.recipe, completed, steps_per_epoch=steps)
        gradients = [parameter.grad for parameter in self.optimizer.parameters]
        self.optimizer.step([gradient for gradient in gradients if gradient is not None], rate)
        for parameter in self.optimizer.parameters:
            parameter.grad = None

    def _reseed(self, step: int) -> None:
        """Make random layers depend on seed and step alone, so that a resumed training draws the same."""
        place = (self.epochs.seed, len(self.progress.epochs), step, self.setup.group.rank)
        torch.manual_seed(random.Random(repr(place)).getrandbits(63))  # noqa: S311 not a secret

    def _sync(self, sums: Tensor) -> None:
        """Accumulate metrics, stop if any process was requested to, checkpoint if due."""
        sums[3] = self.saver.stop_requested
        loss, right, images, stops = self.setup.group.sum(sums).tolist()
        sums.zero_()
        self.progress.add(loss=loss, right=right, images=images)
        if stops and not self.progress.diverged:
            self._stop()
        if self.saver.is_due() and not self.progress.diverged:
            self.saver.save(self.checkpoint())

    def _evaluate(self) -> tuple[float, float]:
        if self.progress.diverged:
            return math.nan, math.nan

        def stop_if_requested() -> None:
            # Several processes stop together at the next step: one alone would leave the others waiting.
            if self.saver.stop_requested and self.setup.group.size == 1:
                self._stop()

        evaluation = evaluate(
            self.model,
            self.test,
            device=self.setup.device,
            group=self.setup.group,
            after_pass=stop_if_requested,
        )
        return evaluation.accuracy, evaluation.loss

    def _stop(self) -> None:
        self.saver.save(self.checkpoint())
        raise StoppedError(self.progress)

    def _tensors(self, images: Images, limit: int) -> ImageTensors:
        return to_tensors(
            images,
            self.setup.configuration.workload,
            side=self.recipe.image_size,
            device=self.setup.device.device,
            limit=limit,
        )
