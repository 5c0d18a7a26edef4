"""What comes from other tools and goes to them: import, export."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generator.cli import answer
from generator.cli.answer import EXIT_PROBLEMS, Answer, Format, FormatOption, has_errors
from generator.cli.panels import AUTHOR
from generator.problems import one_cell

if TYPE_CHECKING:
    from rich.text import Text

    from generator.commands.import_ import Source
    from generator.exchange.loss import Loss


class Foreign(StrEnum):
    """Whose format."""

    WANDB = "wandb"
    KATIB = "katib"
    HYDRA = "hydra"
    NVIDIA = "nvidia"
    CSV = "csv"
    JSONL = "jsonl"


ForeignArgument = Annotated[Foreign, typer.Argument(metavar="FORMAT", help=f"One of {', '.join(Foreign)}.")]


def register(app: typer.Typer) -> None:
    """Add the commands that cross the border."""
    app.command("import", rich_help_panel=AUTHOR)(import_)
    app.command("export", rich_help_panel=AUTHOR)(export)


def import_(
    foreign: ForeignArgument,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file; `-` is standard input.")],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="The sweep's name; default: as the file says."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="PATH", help="Write the spec there, never over a file.")
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Make a spec of another tool's file, and tell all that it could not bring along."""

    def work() -> Answer:
        from generator.commands import import_ as command

        source = _standard_input() if file == "-" else command.Source.read(Path(file))
        found = command.import_(foreign, source, here=answer.here(), name=name, output=output)
        if form is Format.TEXT:
            _report(found.losses)
            _say(found.text, f"wrote {found.path}\nnext: `sweep validate`" if found.is_written else None)
        failed = EXIT_PROBLEMS if has_errors(found.problems) else 0
        return Answer(found.as_data(), problems=found.problems, exit_code=failed)

    answer.answer("import", form, work)


def export(
    foreign: ForeignArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The sweep's name.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="PATH", help="Write the file there, never over one.")
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write a sweep as another tool's file, and tell all that the tool cannot say."""

    def work() -> Answer:
        from generator.commands import export as command
        from generator.commands.workspace import Workspace

        found = command.export(Workspace.find(answer.here()), foreign, name, output=output)
        if form is Format.TEXT:
            _report(found.losses)
            _say(found.text, f"wrote {found.path}" if found.path else None)
        return Answer(found.as_data(), problems=found.warnings)

    answer.answer("export", form, work)


def _standard_input() -> "Source":
    from generator.commands.import_ import LARGEST, Source

    return Source(sys.stdin.buffer.read(LARGEST + 1), "-")


def _say(text: str, instead: str | None) -> None:
    """Print a file as it is, byte for byte: nothing in it is markup, no line is folded."""
    with answer.while_read():
        sys.stdout.flush()
        sys.stdout.buffer.write(f"{instead}\n".encode() if instead else text.encode())


def _report(losses: "Sequence[Loss]") -> None:
    """Tell what was lost on standard error, so that the file can go through a pipe."""
    if not losses:
        return
    from rich.table import Table

    table = Table("not carried over", "instead, or why", box=None, pad_edge=False, title_justify="left")
    for loss in losses:
        table.add_row(_cell(loss.what), _cell(loss.why))
    answer.console(stderr=True).print(table)


def _cell(text: str) -> "Text":
    from rich.text import Text

    return Text(one_cell(text))
