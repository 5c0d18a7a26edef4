"""The training: batches in, one step down the loss for each, a test after each epoch."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.batches import Epochs, Pass, Pictures
from trainer.checkpoint import Checkpoint, Keeper, StoppedError
from trainer.evaluate import evaluate
from trainer.group import Group
from trainer.hyperparameters import Eidf, Knobs, Resnet9
from trainer.machine import Machine
from trainer.optimizer import optimizer
from trainer.progress import Epoch, History, Progress
from trainer.schedule import learning_rate


@dataclass(frozen=True, slots=True)
class Setting:
    """What a training is given, beside the network."""

    knobs: Knobs
    of: dict[str, Any]
    """What a checkpoint is of."""
    epochs: Epochs
    test: Pictures
    machine: Machine
    group: Group
    keeper: Keeper


class Training:
    """A network in training: its weights, its optimizer's memory, its progress."""

    def __init__(self, setting: Setting, model: nn.Module, network: nn.Module, history: History) -> None:
        self.setting = setting
        self.model = model
        self.network = network
        """The same weights, perhaps compiled and in company."""
        self.history = history
        self.optimizer = optimizer(setting.knobs.network, model.parameters())
        self.progress = Progress()
        self.draws = any(isinstance(module, nn.Dropout) for module in model.modules())
        self.first_step_seconds = 0.0
        """CPU time of the process when its first step was done."""

    def run(self, report: Callable[[list[Epoch]], None]) -> None:
        """Train from wherever it stands to the last epoch. Ends early once a loss is not finite."""
        epochs, running = self.setting.knobs.network.epochs, self.setting.knobs.running
        # The finished ones are drawn, too: what is seen is a function of the seed, not of where one began.
        for number, images in zip(range(1, epochs + 1), self.setting.epochs, strict=False):
            if number <= len(self.progress.epochs):
                continue
            self._go_through(images)
            is_due = number % running.test_every == 0 or number == epochs or self.progress.diverged
            self.progress.close(self._tested() if is_due else None)
            report(self.progress.epochs)
            if self.progress.epochs[-1].diverged:
                return
        self.setting.keeper.save(self.checkpoint())

    def checkpoint(self) -> Checkpoint:
        """Give all that it takes to go on from here."""
        return Checkpoint(
            self.setting.of, self.history, self.progress, self.model.state_dict(), self.optimizer.memory
        )

    @torch.no_grad()
    def go_on_from(self, held: Checkpoint, progress: Progress) -> None:
        """Take over weights and memory, and the place that the training has."""
        self.model.load_state_dict(held.weights)
        for mine, saved in zip(self.optimizer.memory, held.memory, strict=True):
            mine.copy_(saved)
        self.progress = progress

    def _go_through(self, images: Pass) -> None:
        self.model.train()
        machine, steps = self.setting.machine, self.setting.epochs.steps
        started = time.perf_counter() - self.progress.seconds
        fresh = torch.zeros(4, dtype=torch.float64, device=machine.device)
        for step in range(self.progress.step, steps):
            fresh[:3] += self._step(images, step)
            self.progress.step = step + 1
            self.first_step_seconds = self.first_step_seconds or time.process_time()
            if self.progress.step % machine.patience and self.progress.step != steps:
                continue
            self.progress.seconds = time.perf_counter() - started
            self._look(fresh)
            if self.progress.diverged:
                return

    def _step(self, images: Pass, step: int) -> Tensor:
        """Go one step down the loss. Gives the sums of the loss, of what was right, and of the images."""
        setting, knobs = self.setting, self.setting.knobs.network
        inputs, targets = images.batch(step)
        if self.draws:
            self._reseed(step)
        with setting.machine.arithmetic():
            scores = self.network(inputs)
        smoothing = 0.0 if isinstance(knobs, Eidf) else knobs.label_smoothing
        loss = functional.cross_entropy(scores.float(), targets, label_smoothing=smoothing, reduction="sum")
        # Gradients are averaged over the processes; the loss is the mean, or the example's sum, over a batch.
        share = setting.group.size / (1 if isinstance(knobs, Resnet9) else setting.epochs.size(step))
        (loss * share).backward()  # type: ignore[no-untyped-call]
        self._descend(step)
        right = (scores.argmax(1) == targets).sum()
        return torch.stack(
            [loss.detach().double(), right.double(), torch.full_like(right, len(targets)).double()]
        )

    def _descend(self, step: int) -> None:
        steps = self.setting.epochs.steps
        taken = len(self.progress.epochs) * steps + step
        rate = learning_rate(self.setting.knobs.network, taken, steps_an_epoch=steps)
        gradients = [parameter.grad for parameter in self.optimizer.parameters]
        self.optimizer.step([gradient for gradient in gradients if gradient is not None], rate)
        for parameter in self.optimizer.parameters:
            parameter.grad = None

    def _reseed(self, step: int) -> None:
        """Let what a step leaves out depend on the seed and its place alone: a resumed one is alike."""
        place = (self.setting.epochs.seed, len(self.progress.epochs), step, self.setting.group.rank)
        torch.manual_seed(random.Random(repr(place)).getrandbits(63))  # noqa: S311 no secret

    def _look(self, fresh: Tensor) -> None:
        """Add up, save if it is time, end if any of the processes was asked to."""
        keeper = self.setting.keeper
        fresh[3] = keeper.asked
        loss, right, images, asked = self.setting.group.summed(fresh).tolist()
        fresh.zero_()
        self.progress.add(loss, right, images)
        if asked and not self.progress.diverged:
            self._stop()
        if keeper.due() and not self.progress.diverged:
            keeper.save(self.checkpoint())

    def _tested(self) -> tuple[float, float]:
        setting = self.setting

        def look() -> None:
            # Several processes end together at the next step: one alone would leave the others waiting.
            if setting.keeper.asked and setting.group.size == 1:
                self._stop()

        if self.progress.diverged:
            return math.nan, math.nan
        found = evaluate(self.model, setting.test, setting.machine, setting.group, look)
        return found.accuracy, found.loss

    def _stop(self) -> None:
        self.setting.keeper.save(self.checkpoint())
        raise StoppedError(self.progress)
