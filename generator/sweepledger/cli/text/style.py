"""The common style of tables: columns and statuses."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from sweepledger.cli.response import escape_control_characters

UNFOLDED_COLUMNS = frozenset({"", "trial"})
"""Columns that are folded last, because users copy ids from them."""

STATUS_STYLES = {
    "ok": "green",
    "diverged": "yellow",
    "pruned": "cyan",
    "missing": "dim",
    **dict.fromkeys(("failed", "timeout", "oom", "evicted", "corrupt", "foreign"), "red"),
}


@dataclass(frozen=True)
class FirstFittingTable:
    """The first of several tables that fits the console without folding; else the last one."""

    tables: tuple[Table, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table that Rich prints."""
        *wider, last = self.tables
        yield next((table for table in wider if _width(table) <= options.max_width), last)


def _width(table: Table) -> int:
    """Return the width of an unfolded table of `new_table` in columns of the console.

    Rich measures each line that a cell might be folded to, which takes as long as printing the table.
    """
    lines = (
        max(
            (cell_len(line) for cell in (column.header, *column.cells) for line in str(cell).split("\n")),
            default=0,
        )
        for column in table.columns
    )
    gaps = table.padding[1] + table.padding[3]
    return sum(lines) + gaps * max(0, len(table.columns) - 1)


class _UntrustedTable(Table):
    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row; a terminal does not interpret control characters in its texts."""
        texts = (untrusted_text(cell) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*texts, **options)


def new_table(*headings: str) -> Table:
    """Return an empty table in the common style."""
    table = _UntrustedTable(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for heading in headings:
        table.add_column(untrusted_text(heading), overflow="fold", no_wrap=heading in UNFOLDED_COLUMNS)
    return table


def filled_table(headings: Iterable[str], rows: Iterable[Iterable[RenderableType]]) -> Table:
    """Return a table in the common style with these rows."""
    table = new_table(*headings)
    for row in rows:
        table.add_row(*row)
    return table


def facts_table(facts: Iterable[tuple[str, object]]) -> Table:
    """Return a table of names and values without a heading; only values, such as digests, are folded."""
    table = new_table("", "")
    table.show_header = table.columns[1].no_wrap = False
    for name, value in facts:
        table.add_row(Text(name, "bold"), value if isinstance(value, Text) else str(value))
    return table


def styled_status(status: str) -> Text:
    """Return a status in its colour."""
    return Text(status, STATUS_STYLES.get(status, ""))


def status_with_reason(status: str, reason: str | None) -> Text:
    """Return a status in its colour, with the reason unless it repeats the status."""
    text = f" ({escape_control_characters(reason)})" if reason and reason != status else ""
    return styled_status(status).append(text, "default")


def untrusted_text(text: str, style: str = "") -> Text:
    """Return text whose control characters a terminal does not interpret."""
    return Text(escape_control_characters(text), style)


def batch_line(batch: str, state: str, details: str, hint: str = "") -> str:
    """Return the message about a batch, with the hint below it."""
    return f"{batch}: {state}: {details}" + (f"\n  hint: {hint}" if hint else "")
