"""`sweep export`: a sweep as another tool's file, with everything told that the tool cannot say."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator import search
from generator.commands.workspace import Workspace
from generator.errors import SpecError, UsageError
from generator.exchange import WRITERS
from generator.exchange.loss import Loss
from generator.problems import Problem
from generator.repo.files import refuse_outside, write_file
from generator.search import Expansion


@dataclass(frozen=True, slots=True)
class Sent:
    """A file of another tool."""

    text: str
    losses: tuple[Loss, ...]
    warnings: tuple[Problem, ...]
    path: str | None
    """Where it was written, if it was."""

    def as_data(self) -> dict[str, Any]:
        """Give what machines want to know."""
        losses = [{"what": loss.what, "why": loss.why} for loss in self.losses]
        return {"text": self.text, "path": self.path, "losses": losses}


KNOW_SEARCHES = frozenset({"katib", "wandb"})
"""Formats of tools that search by themselves."""


def export(workspace: Workspace, format_name: str, name: str, *, output: Path | None = None) -> Sent:
    """Write a sweep for another tool. Raises SpecError, UsageError."""
    if output is not None and os.path.lexists(output):
        raise UsageError(
            f"{output} exists and is not overwritten", hint="choose another --output, or remove it"
        )
    if output is not None:
        refuse_outside(workspace.root, output)
    (sweep,) = workspace.sweeps([name])
    if sweep.search is not None and format_name not in KNOW_SEARCHES:
        raise UsageError(
            f"{name} goes by rounds, and {format_name} lists assignments that are known",
            hint=f"export {' or '.join(sorted(KNOW_SEARCHES))}; `sweep results --output csv` has what ran",
        )
    found = search.explore(sweep)
    if not isinstance(found, Expansion):
        raise SpecError(found)
    exported = WRITERS[format_name](sweep, found.assignments)
    if output is not None:
        write_file(output, exported.text.encode())
    warnings = tuple(sorted([*sweep.warnings, *found.warnings]))
    return Sent(exported.text, exported.losses, warnings, output.as_posix() if output else None)
