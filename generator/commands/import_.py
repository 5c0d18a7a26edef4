"""`sweep import`: another tool's file as a spec, with everything told that it could not bring along."""

import os
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from generator import search, spec
from generator.commands.workspace import SPECS, Workspace
from generator.errors import RepositoryError, SpecError, UsageError
from generator.exchange import READERS
from generator.exchange.loss import ForeignError, Imported, Loss
from generator.exchange.names import sweep_name
from generator.exchange.spec_text import spec_text
from generator.problems import Problem
from generator.repo.files import refuse_outside, storage, write_file
from generator.search import Expansion
from generator.structs.settings import Settings
from generator.structs.sweep import Sweep
from generator.untrusted import read_regular

LARGEST = 64 * 1024 * 1024
"""Bytes of a file to import; each format has a smaller limit of its own."""

NAMELESS = "imported"
"""What a sweep is called where neither its file nor a person names it."""

UNWRITTEN = "<imported>"
"""Stands for the file of a spec that is only shown."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file of another tool."""

    content: bytes
    shown: str
    """As a person would type it; `-` is standard input."""

    @classmethod
    def read(cls, path: Path) -> "Source":
        """Read a file. Raises UsageError if there is none, StorageError if it cannot be read."""
        with storage(path):
            content = read_regular(path, LARGEST)
        if content is None:
            raise UsageError(f"{path} is no file", hint="`-` reads standard input")
        return cls(content, path.as_posix())


@dataclass(frozen=True, slots=True)
class Brought:
    """A spec made of a foreign file."""

    text: str
    losses: tuple[Loss, ...]
    problems: tuple[Problem, ...]
    """What our own rules say of it; it is given all the same, to be mended."""
    path: str
    """Where it was written, or is meant to be."""
    is_written: bool

    def as_data(self) -> dict[str, Any]:
        """Give what machines want to know."""
        return {
            "spec": self.text,
            "path": self.path if self.is_written else None,
            "losses": [{"what": loss.what, "why": loss.why} for loss in self.losses],
        }


def import_(
    format_name: str, source: Source, *, here: Path, name: str | None = None, output: Path | None = None
) -> Brought:
    """Read a file, check the spec made of it, and write it if it shall be.

    Raises SpecError, UsageError, StorageError for a place that nothing is written to.
    """
    if output is not None and os.path.lexists(output):
        raise UsageError(
            f"{output} exists and is not overwritten", hint="choose another --output, or remove it"
        )
    root, settings = _around(here)
    if output is not None:
        refuse_outside(root, output)
    imported, text = _read(format_name, source, name or (output.stem if output else None))
    shown = output.as_posix() if output else f"{SPECS}/{imported.spec['name']}.yaml"
    problems = _problems(text, shown, settings, source)
    if output is None:
        problems = tuple(_not_in_a_file(problem, shown, source) for problem in problems)
    else:
        write_file(output, text.encode())
    return Brought(text, imported.losses, problems, shown, is_written=output is not None)


def _not_in_a_file(problem: Problem, path: str, source: Source) -> Problem:
    """Point into what is shown, or read, instead of into a file that nobody wrote."""
    return replace(problem, file=UNWRITTEN if problem.file == path else source.shown)


def _read(format_name: str, source: Source, wanted: str | None) -> tuple[Imported, str]:
    """Make a spec, and its text."""
    stem = PurePosixPath(source.shown).stem
    try:
        imported = READERS[format_name](source.content, name=wanted or sweep_name(stem) or NAMELESS)
        if wanted:
            imported = replace(imported, spec={**imported.spec, "name": wanted})
        return imported, spec_text(imported, f"{PurePosixPath(source.shown).name} ({format_name})")
    except ForeignError as error:
        line, column = (error.line, 1) if error.line else (0, 0)
        hint = error.hint or f"is it a file of {format_name}?"
        problem = Problem(source.shown, line, column, "", str(error), code="foreign-file", hint=hint)
        raise SpecError([problem]) from error


def _around(here: Path) -> tuple[Path | None, Settings]:
    """Find the repository around, if there is one, and its settings."""
    try:
        workspace = Workspace.find(here)
    except RepositoryError:
        return None, Settings()
    return workspace.root, workspace.settings


def _problems(text: str, path: str, settings: Settings, source: Source) -> tuple[Problem, ...]:
    def beside(name: str) -> bytes | None:
        """A table too large for a spec goes beside it: the source itself, as yet under another name."""
        return source.content if name.endswith(".csv") else None

    found = spec.parse(text.encode(), path, settings, beside=beside)
    if not isinstance(found, Sweep):
        return found
    expansion = search.explore(found)
    told = expansion.warnings if isinstance(expansion, Expansion) else expansion
    return tuple(sorted([*found.warnings, *told]))
