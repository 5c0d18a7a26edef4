"""How far a training has come, as plain values. Knows no torch."""

import math
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Epoch:
    """How one pass over the training images went."""

    number: int
    """From 1."""
    images: int
    """Seen in this epoch: fewer than there are if training diverged."""
    loss: float
    """Mean over the images, each at the moment it was seen; NaN if training diverged."""
    accuracy: float
    """Share of the images that were classified rightly at the moment they were seen."""
    seconds: float
    """Of training alone."""
    test_accuracy: float | None = None
    """None where this epoch was not tested; NaN if training diverged."""
    test_loss: float | None = None

    @property
    def diverged(self) -> bool:
        """Tell whether there is nothing left to train."""
        return math.isnan(self.loss)


@dataclass(frozen=True, slots=True)
class History:
    """What went before this attempt."""

    leg: int = 0
    """How many trainings, each from its parent's last weights, went before this one."""
    resumed: int = 0
    """How often this one was taken up again."""
    precisions: tuple[str, ...] = ()
    """Of all its attempts: a retry may land on other hardware."""

    def with_attempt(self, precision: str) -> "History":
        """Add one that goes on."""
        precisions = tuple(sorted({*self.precisions, precision}))
        return History(self.leg, self.resumed + 1, precisions)


@dataclass(slots=True)
class Progress:
    """The finished epochs, and sums over the steps of the one under way."""

    epochs: list[Epoch] = field(default_factory=list)
    step: int = 0
    """Steps done of the epoch under way."""
    loss: float = 0.0
    right: float = 0.0
    images: float = 0.0
    seconds: float = 0.0

    def add(self, loss: float, right: float, images: float) -> None:
        """Add the sums over some images."""
        self.loss += loss
        self.right += right
        self.images += images

    @property
    def diverged(self) -> bool:
        """Tell whether the epoch under way has come to an end of its own."""
        return not math.isfinite(self.loss)

    def close(self, test: tuple[float, float] | None) -> Epoch:
        """End the epoch under way, with the accuracy and the loss of its test."""
        accuracy, loss = test or (None, None)
        mean = math.nan if self.diverged else self.loss / self.images
        number, images = len(self.epochs) + 1, int(self.images)
        epoch = Epoch(number, images, mean, self.right / self.images, self.seconds, accuracy, loss)
        self.epochs.append(epoch)
        self.step, self.loss, self.right, self.images, self.seconds = 0, 0.0, 0.0, 0.0, 0.0
        return epoch


def metrics(epochs: list[Epoch]) -> dict[str, float]:
    """Name the numbers after an epoch: of the training up to it, and of its test if there was one.

    If training diverged, what was measured on the wreck is NaN as well.
    """
    last = epochs[-1]
    seconds = math.fsum(epoch.seconds for epoch in epochs)
    tested = (
        {}
        if last.test_accuracy is None
        else {"test_accuracy": last.test_accuracy, "test_loss": last.test_loss}
    )
    wrecked = last.diverged or any(math.isnan(value) for value in tested.values() if value is not None)
    return {
        "images_per_second": sum(epoch.images for epoch in epochs) / seconds,
        **{name: math.nan if wrecked else float(value or 0) for name, value in tested.items()},
        "train_loss": last.loss,
        "train_seconds": seconds,
    }
