"""The nodes of a document as they stand in the file: frozen, positioned, nothing resolved away."""

from dataclasses import dataclass
from typing import NamedTuple


class Mark(NamedTuple):
    """A place in a file; both numbers from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """One text; plain ones still have to be given a meaning."""

    text: str
    plain: bool
    """Neither quoted nor a block."""
    mark: Mark
    trimmings: tuple[str, ...] = ()
    """Anchor and tag as written, which no file may have."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    items: tuple["Node", ...]
    mark: Mark
    trimmings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys and values in the order written, repeated keys included."""

    entries: tuple[tuple["Node", "Node"], ...]
    mark: Mark
    trimmings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alias:
    """A reference to an anchor; never followed."""

    name: str
    mark: Mark


Node = Scalar | Sequence | Mapping | Alias
