"""What of a locked program is another by now: it runs as locked until somebody asks for an update."""

from collections.abc import Iterator
from dataclasses import dataclass

from generator.structs.program import Program


@dataclass(frozen=True, slots=True)
class Outdated:
    """A part of a program, as it is locked and as it is today."""

    part: str
    """Code, image or data."""
    name: str
    """The folder of the code, the name of the dataset; empty for the image."""
    locked: str
    current: str
    """Empty where there is none any more."""


def outdated(locked: Program, today: Program) -> tuple[Outdated, ...]:
    """Compare what a batch would run with what an update would lock."""
    return tuple(one for one in _parts(locked, today) if one.locked != one.current)


def _parts(locked: Program, today: Program) -> Iterator[Outdated]:
    yield Outdated("code", f"{locked.code.path}/", locked.code.tree, today.code.tree)
    yield Outdated("image", "", locked.image, today.image)
    if locked.data:
        yield Outdated("data", locked.data.name, locked.data.digest, today.data.digest if today.data else "")
