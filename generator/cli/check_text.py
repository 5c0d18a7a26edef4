"""`sweep check` for people: what new batches take, what was looked at, and what git does not have yet."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from generator.cli import plan_words
from generator.cli.answer import has_errors
from generator.cli.values import counted

if TYPE_CHECKING:  # a command pays only for what it runs
    from generator.commands.check import Checked

MOST_PATHS = 10


def checked(found: Checked) -> tuple[RenderableType, ...]:
    """Show what a check found beside the problems."""
    built = f", {len(found.builds.built)} overlay(s) built" if found.builds.built else ""
    same = f", {len(found.builds.unchanged)} as merged" if found.builds.unchanged else ""
    verdict, colour = ("problems", "red") if has_errors(found.problems) else ("ok", "green")
    rooms = (Text(f"{name}: {plan_words.room(room)}") for name, room in found.rooms)
    verdict_line = Text(f"{verdict}: {found.specs} spec(s){built}{same}", colour)
    return (*rooms, verdict_line, *(Text(line, "yellow") for line in _untracked(found.untracked)))


def _untracked(paths: tuple[str, ...]) -> Iterator[str]:
    if not paths:
        return
    yield f"git does not have {counted(len(paths), 'path')} yet, and a merge takes what git has:"
    yield from (f"  git add {shlex.quote(path)}" for path in itertools.islice(paths, MOST_PATHS))
    if len(paths) > MOST_PATHS:
        yield f"  … {len(paths) - MOST_PATHS:,} more; `git status` shows them"
