"""The story of sweeps as lines: a history has thousands, and a table that folds its cells takes its time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from generator.cli.show import SHORT_ID

if TYPE_CHECKING:  # a command pays only for what it runs
    from generator.commands.log import Entry

HEADINGS = ("commit", "date", "sweep", "what", "", "change")


def history(found: Iterable[Entry], name: str | None = None) -> tuple[RenderableType, ...]:
    """Show a sweep's story, or that of all, a line each."""
    rows = [
        (
            one.commit.id[:SHORT_ID],
            one.commit.date[:10],
            one.sweep,
            one.kind,
            one.text,
            "" if one.change is None else f"{one.change:+.6g}",
        )
        for one in found
    ]
    if not rows:
        return (Text(f"git holds {f'nothing of {name}' if name else 'no sweep'} yet"),)
    head, *lines = _aligned([HEADINGS, *rows])
    return (Text(head, "bold"), Text("\n".join(lines)))


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    shown = [[_harmless(cell) for cell in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(*shown, strict=True)]
    return [
        "  ".join(
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in shown
    ]


def _width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def _harmless(text: str) -> str:
    """Show a stranger's control characters instead of obeying them; a line stays one."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
