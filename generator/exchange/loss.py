"""What crosses the border between our specs and other tools' files, and what is lost on the way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from generator.formats.foreign_yaml import ForeignError
from generator.structs.sweep import Sweep
from generator.structs.values import Value

__all__ = ["Exported", "ForeignError", "Imported", "Loss", "Reader", "Writer"]


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that the other side says otherwise, or cannot say."""

    what: str
    """The part of the source, in its own words: `early_terminate`."""
    why: str
    """What stands there instead, and why."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A spec made from another tool's file; no one has checked it yet."""

    spec: dict[str, Any]
    """Plain data in the spec's language, in the order to be written."""
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class Exported:
    """A sweep as another tool's file."""

    text: str
    losses: tuple[Loss, ...]


class Reader(Protocol):
    """Reads another tool's file. Raises ForeignError where it is none of that tool's."""

    def __call__(self, content: bytes, *, name: str) -> Imported:
        """Make a spec of that name."""


class Writer(Protocol):
    """Writes another tool's file, as near to the sweep as that tool can come."""

    def __call__(self, sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Exported:
        """Write the sweep; the assignments are its expanded ones, in order."""
