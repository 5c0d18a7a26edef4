"""A table in several forms, of which the terminal's width chooses one."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table

UNBOUNDED = 10_000
"""Columns in which no table of ours is folded."""


@dataclass(frozen=True)
class Fitting:
    """The first table, from the widest on, that is shown without folding; else the last."""

    tables: tuple[Table, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Choose, as Rich asks."""
        unbounded = options.update(width=UNBOUNDED)
        *wider, last = self.tables
        fits = (one for one in wider if console.measure(one, options=unbounded).maximum <= options.max_width)
        yield next(fits, last)
