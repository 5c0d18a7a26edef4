"""Images and their classes as bytes, and the dataset they come from: what all loaders give. Opens no file."""

from dataclasses import dataclass

CLASSES = 10
"""Of every dataset here."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How many images of which form a dataset has."""

    train: int
    test: int
    channels: int
    side: int

    @property
    def image(self) -> int:
        """Bytes of an image."""
        return self.channels * self.side * self.side

    @property
    def length(self) -> int:
        """Bytes of all images and of their classes."""
        return (self.train + self.test) * (self.image + 1)


@dataclass(frozen=True, slots=True)
class Images:
    """A byte a pixel, 0 to 255, and a byte a class."""

    pixels: bytes | memoryview
    """Count x channels x side x side, no gaps: in memory, or pages of a file that a node's trials share."""
    labels: bytes | memoryview
    channels: int
    side: int

    @property
    def count(self) -> int:
        """Count the images."""
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Dataset:
    """What to train with and what to test with."""

    name: str
    """What it really is: `mnist-5k` is not called `mnist`."""
    digest: str
    """`sha256:` and 64 hex digits, of the published files; each loader says over what."""
    train: Images
    test: Images
