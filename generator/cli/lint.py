"""`sweep lint`: the checks of every merge, for manifests that something else has rendered."""

import sys
from typing import Annotated

import typer

from generator.cli import answer
from generator.cli.answer import EXIT_DRIFT, EXIT_PROBLEMS, Answer, Format, FormatOption
from generator.cli.panels import PLATFORM


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("lint", rich_help_panel=PLATFORM)(lint)


def lint(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Rendered manifests, folders of them, or - for stdin."),
    ],
    form: FormatOption = Format.TEXT,
) -> None:
    """Check rendered manifests: schema, cross-field rules, Pod Security, hardening. Needs no repository."""

    def work() -> Answer:
        from generator.commands import lint as command
        from generator.reader.manifests import BYTES

        stdin = sys.stdin.buffer.read(BYTES + 1) if command.STDIN in files else b""
        found = command.lint(files, stdin, answer.here())
        wrong = answer.has_errors(found.problems)
        code = EXIT_DRIFT * wrong if found.is_read else EXIT_PROBLEMS
        said = found.found
        shown = f"{len(said.objects)} object(s) checked, {len(said.skipped)} skipped"
        shown += f", {len(said.partly)} by schema alone" if said.partly else ""
        shown += f"; {len(said.others)} document(s) that are no manifests" if said.others else ""
        data = {key: list(getattr(said, key)) for key in ("objects", "partly", "skipped", "others")}
        return Answer(data, (shown,), found.problems, code)

    answer.answer("lint", form, work)
