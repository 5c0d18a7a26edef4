"""Where another tool's script stands, said as our specs say it: a folder of code, and a path inside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from generator.exchange.loss import Loss

FOLDER = "code"
"""The folder that a script at the root, which cannot be one, is best moved to."""


@dataclass(frozen=True, slots=True)
class Script:
    """A program as a spec names it, and what its author has to know."""

    folder: str
    program: str
    losses: tuple[Loss, ...]

    def as_spec(self) -> dict[str, Any]:
        """Give the keys of a spec that say it."""
        return {"program": self.program, "run": {"code": {"path": self.folder}}}


def located(program: str) -> Script:
    """Split the path of a script, relative to the repository, into the folder that is locked and the rest."""
    path = PurePosixPath(program)
    parts = [part for part in path.parts if part != "."]
    if path.is_absolute() or ".." in parts or not parts:
        name = parts[-1] if parts and parts[-1] not in {"..", "/"} else "train.py"
        why = f"is outside the repository, whose commits run; written as {FOLDER}/{name}: copy it there"
        return Script(FOLDER, name, (Loss(f"program: {program}", why),))
    if len(parts) > 1:
        folder, rest = parts[0], "/".join(parts[1:])
        why = f"the folder {folder} is locked and run; a file outside of it is not there for a trial"
        return Script(folder, rest, (Loss(f"program: {program}", why),))
    why = (
        f"stands at the repository's root, but code is locked as a folder; written as {FOLDER}/{parts[0]}: "
        f"move it and what it imports (`mkdir {FOLDER} && git mv {parts[0]} {FOLDER}/`)"
    )
    return Script(FOLDER, parts[0], (Loss(f"program: {program}", why),))


def script_in(command: Sequence[str]) -> int | None:
    """Find the element of a command that is a Python script."""
    return next((place for place, part in enumerate(command) if part.endswith(".py")), None)
