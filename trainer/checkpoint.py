"""What survives an attempt: weights, the optimizer's memory and the place in the training, in one file.

Written whole or not at all; read without running anything that it says.
"""

import io
import json
import pickle
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from trainer import files
from trainer.contract import BAD_HYPERPARAMETERS, STOPPED, STORAGE_FAILED, Problem, TrialError
from trainer.progress import Epoch, History, Progress

FILE = "checkpoint.pt"
LARGEST = 16 * 1024**3
"""Bytes; many times what any of the networks needs."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A training, as it stood."""

    of: dict[str, Any]
    """What it is a training of: two with the same go on alike."""
    history: History
    progress: Progress
    weights: dict[str, Tensor]
    memory: list[Tensor]

    def packed(self) -> bytes:
        """Write it as bytes."""
        about = json.dumps(
            {"of": self.of, "history": asdict(self.history), "progress": asdict(self.progress)}
        )
        stream = io.BytesIO()
        torch.save({"about": about, "weights": self.weights, "memory": self.memory}, stream)
        return stream.getvalue()


def unpacked(content: bytes, path: Path) -> Checkpoint:
    """Read it from bytes. Raises TrialError where they are none."""
    try:
        held = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        about = json.loads(held["about"])
        epochs = [Epoch(**epoch) for epoch in about["progress"].pop("epochs")]
        progress = Progress(epochs=epochs, **about["progress"])
        history = History(**about["history"])
        return Checkpoint(about["of"], history, progress, held["weights"], held["memory"])
    except (RuntimeError, ValueError, KeyError, TypeError, EOFError, pickle.UnpicklingError) as error:
        reason = str(error).partition("\n")[0][:80]
        message = f"must be a checkpoint of this trainer, but {reason or type(error).__name__}"
        hint = "delete the file, and the training begins anew"
        raise TrialError([Problem(str(path), message, STORAGE_FAILED, hint)]) from error


def read(folder: Path | None) -> bytes | None:
    """Give the bytes of a folder's checkpoint, if it has one."""
    if folder is None or not (folder / FILE).exists():
        return None
    return files.read(folder / FILE, limit=LARGEST)


def fits(held: Checkpoint, weights: dict[str, Tensor], memory: list[Tensor]) -> bool:
    """Tell whether a checkpoint is of a network and an optimizer of these shapes."""
    return (
        {name: weight.shape for name, weight in held.weights.items()}
        == {name: weight.shape for name, weight in weights.items()}
    ) and [each.shape for each in held.memory] == [each.shape for each in memory]


def misfit(path: Path) -> TrialError:
    """Tell of a parent that another network was trained from."""
    message = "holds weights of another network than these hyperparameters ask for"
    hint = "a trial that goes on from another's weights has the same network, width and normalisation"
    return TrialError([Problem(str(path), message, BAD_HYPERPARAMETERS, hint)])


class StoppedError(TrialError):
    """Asked to end, with everything saved."""

    def __init__(self, progress: Progress) -> None:
        done = f"after {len(progress.epochs)} epochs and {progress.step} steps"
        super().__init__([Problem("SIGTERM", f"saved {done}; the next attempt goes on there", STOPPED)])


class Keeper:
    """Saves at intervals, and when asked to end; without a folder it lets SIGTERM end the process at once."""

    def __init__(self, folder: Path | None, every: float, *, writes: bool) -> None:
        self.path = folder / FILE if folder else None
        self.every, self.writes = every, writes
        self.asked = False
        self.saved_at = time.monotonic()
        if folder:
            signal.signal(signal.SIGTERM, self._remember)

    def due(self) -> bool:
        """Tell whether it is time to save."""
        return bool(self.path) and self.writes and time.monotonic() - self.saved_at >= self.every

    def save(self, checkpoint: Checkpoint) -> None:
        """Write it in the place of the last one."""
        if self.path and self.writes:
            files.write(self.path, checkpoint.packed())
            self.saved_at = time.monotonic()

    def _remember(self, _number: int, _frame: FrameType | None) -> None:
        # Not here: a signal comes in the middle of a step, when weights and memory are of different steps.
        self.asked = True
