"""Checkpoints: the progress of a training, its weights and its optimizer's state, in one file.

The file is written atomically, and read without running any code that it contains.
"""

import io
import json
import math
import pickle
import signal
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from trainer import files
from trainer.contract import BAD_HYPERPARAMETERS, STOPPED, STORAGE_FAILED, Problem, TrialError

FILE = "checkpoint.pt"
LARGEST = 16 * 1024**3
"""Maximum size in bytes; many times what any of the networks needs."""


@dataclass(frozen=True, slots=True)
class EpochMetrics:
    """The metrics of one pass over the training images."""

    number: int
    """Counted from 1."""
    images: int
    """Images seen; fewer than all if training diverged."""
    loss: float
    """Mean over the images, each when it was seen; NaN if training diverged."""
    accuracy: float
    """Fraction of images classified correctly when they were seen."""
    seconds: float
    """Training time, without the test."""
    test_accuracy: float | None = None
    """None if this epoch was not tested; NaN if training diverged."""
    test_loss: float | None = None

    @property
    def diverged(self) -> bool:
        """Whether the loss is no longer a number, so that training ends."""
        return math.isnan(self.loss)


@dataclass(frozen=True, slots=True)
class History:
    """What happened before this attempt."""

    leg: int = 0
    """How many trainings came before this one, each of which passed on its last weights."""
    resumed: int = 0
    """How many times this training was resumed."""
    precisions: tuple[str, ...] = ()
    """The precisions of all attempts: a retry may run on other hardware."""

    def resume(self, precision: str) -> "History":
        """Return the history of an attempt that resumes this training."""
        precisions = tuple(sorted({*self.precisions, precision}))
        return History(self.leg, self.resumed + 1, precisions)


@dataclass(slots=True)
class Progress:
    """The completed epochs, and the sums over the steps of the current one."""

    epochs: list[EpochMetrics] = field(default_factory=list)
    step: int = 0
    """Steps completed in the current epoch."""
    loss: float = 0.0
    right: float = 0.0
    images: float = 0.0
    seconds: float = 0.0

    def add(self, *, loss: float, right: float, images: float) -> None:
        """Add the sums over some images."""
        self.loss += loss
        self.right += right
        self.images += images

    @property
    def diverged(self) -> bool:
        """Whether the loss of the current epoch is no longer finite."""
        return not math.isfinite(self.loss)

    def close(self, test: tuple[float, float] | None) -> None:
        """Complete the current epoch, with the accuracy and the loss of its test."""
        accuracy, loss = test or (None, None)
        mean = math.nan if self.diverged else self.loss / self.images
        number, images = len(self.epochs) + 1, int(self.images)
        right = self.right / self.images
        self.epochs.append(EpochMetrics(number, images, mean, right, self.seconds, accuracy, loss))
        self.step, self.loss, self.right, self.images, self.seconds = 0, 0.0, 0.0, 0.0, 0.0


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A training at one moment."""

    identity: dict[str, Any]
    """Workload, hyperparameters, data and seed: only a training with the same ones resumes from it."""
    history: History
    progress: Progress
    weights: dict[str, Tensor]
    state: list[Tensor]
    """The optimizer's state."""

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        about = json.dumps(
            {"of": self.identity, "history": asdict(self.history), "progress": asdict(self.progress)}
        )
        stream = io.BytesIO()
        torch.save({"about": about, "weights": self.weights, "memory": self.state}, stream)
        return stream.getvalue()

    def fits(self, weights: dict[str, Tensor], state: list[Tensor]) -> bool:
        """Return whether a network and an optimizer have the shapes of this checkpoint."""
        return (
            {name: weight.shape for name, weight in self.weights.items()}
            == {name: weight.shape for name, weight in weights.items()}
        ) and [each.shape for each in self.state] == [each.shape for each in state]


def from_bytes(content: bytes, path: Path) -> Checkpoint:
    """Return the checkpoint in a file's content. Raises TrialError if it is not one."""
    try:
        saved = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        about = json.loads(saved["about"])
        epochs = [EpochMetrics(**epoch) for epoch in about["progress"].pop("epochs")]
        progress = Progress(epochs=epochs, **about["progress"])
        history = History(**about["history"])
        return Checkpoint(about["of"], history, progress, saved["weights"], saved["memory"])
    except (RuntimeError, ValueError, KeyError, TypeError, EOFError, pickle.UnpicklingError) as error:
        reason = str(error).partition("\n")[0][:80]
        message = f"must be a checkpoint of this trainer, but {reason or type(error).__name__}"
        hint = "delete the file to train from the start"
        raise TrialError([Problem(str(path), message, STORAGE_FAILED, hint)]) from error


def read(folder: Path | None) -> bytes | None:
    """Return the content of a folder's checkpoint; None if it has none."""
    if folder is None or not (folder / FILE).exists():
        return None
    return files.read(folder / FILE, limit=LARGEST)


def misfit(path: Path) -> TrialError:
    """Return the error for a parent whose network has other shapes."""
    message = "holds the weights of a different network"
    hint = "a trial that continues another must have the same network, width and normalization"
    return TrialError([Problem(str(path), message, BAD_HYPERPARAMETERS, hint)])


class StoppedError(TrialError):
    """Training stopped on request, after saving a checkpoint."""

    def __init__(self, progress: Progress) -> None:
        done = f"after {len(progress.epochs)} epochs and {progress.step} steps"
        super().__init__([Problem("SIGTERM", f"saved {done}; the next attempt resumes there", STOPPED)])


class Saver:
    """Saves checkpoints at intervals and at SIGTERM; without a folder, SIGTERM ends the process at once."""

    def __init__(self, folder: Path | None, interval: float, *, writes: bool) -> None:
        self.path = folder / FILE if folder else None
        self.interval, self.writes = interval, writes
        self.stop_requested = False
        self.saved_at = time.monotonic()
        if folder:
            signal.signal(signal.SIGTERM, self._request_stop)

    def is_due(self) -> bool:
        """Return whether it is time to save."""
        return bool(self.path) and self.writes and time.monotonic() - self.saved_at >= self.interval

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the last checkpoint."""
        if self.path and self.writes:
            files.write(self.path, checkpoint.to_bytes())
            self.saved_at = time.monotonic()

    def _request_stop(self, _number: int, _frame: FrameType | None) -> None:
        # Nothing is saved here: a signal may arrive within a step, when weights and state do not match.
        self.stop_requested = True
