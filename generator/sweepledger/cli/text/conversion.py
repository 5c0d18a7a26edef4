"""The outcome of a conversion: the file on standard output, or where it is, and what was left out on standard error."""

import sys
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sweepledger.cli import response
from sweepledger.exchange.conversion import Loss
from sweepledger.problems import escape_cell


def print_conversion(losses: Sequence[Loss], text: str, message: str | None) -> None:
    """Print what was not converted, and the message; without a message the text of the file, byte for byte."""
    if losses:
        table = Table("not carried over", "instead, or why", box=None, pad_edge=False, title_justify="left")
        for loss in losses:
            table.add_row(*(Text(escape_cell(cell)) for cell in (loss.part, loss.reason)))
        response.open_console(stderr=True).print(table)
    with response.ignore_broken_pipe():
        sys.stdout.flush()
        sys.stdout.buffer.write(f"{message}\n".encode() if message else text.encode())
