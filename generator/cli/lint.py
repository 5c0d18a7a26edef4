"""`sweep lint`: the checks of every merge, for manifests that something else has rendered."""

import sys
from typing import Annotated

import typer

from generator.cli import answer
from generator.cli.answer import EXIT_DRIFT, EXIT_PROBLEMS, Answer, Format, FormatOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("lint")(lint)


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
        shown = f"{len(found.objects)} object(s) checked, {len(found.skipped)} skipped"
        data = {"objects": list(found.objects), "skipped": list(found.skipped)}
        return Answer(data, (shown,), found.problems, code)

    answer.answer("lint", form, work)
