"""`sweep check`: the verdict for people, for machines, and where a pull request is looked at."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generator import __version__
from generator.cli import answer
from generator.cli.answer import EXIT_DRIFT, EXIT_PROBLEMS, Answer, BaseOption, Format, MonthOption
from generator.cli.panels import AUTHOR
from generator.errors import GeneratorError
from generator.problems import Problem

if TYPE_CHECKING:
    from generator.commands.check import Checked

PATCH = "mend.patch"
STATUS = {0: "ok", EXIT_PROBLEMS: "problems", EXIT_DRIFT: "problems"}


class CheckFormat(StrEnum):
    """How to answer; a code host shows annotations beside the lines of a pull request."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", rich_help_panel=AUTHOR)(check)


def check(
    base: BaseOption = None,
    month: MonthOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Build every active overlay, changed or not.")
    ] = False,
    form: Annotated[
        CheckFormat,
        typer.Option("--format", help="How to answer: text, one JSON object, or GitHub's annotations."),
    ] = CheckFormat.TEXT,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="DIR",
            help=f"Also write check.json and check.sarif there, and {PATCH} where one would mend the change.",
        ),
    ] = None,
    summary: Annotated[
        Path | None, typer.Option("--summary", metavar="FILE", help="Also append the verdict, as Markdown.")
    ] = None,
) -> None:
    """Check all that must hold before a merge: specs, drift, merged batches, bases, builds, manifests."""

    def work() -> Answer:
        try:
            found, patch = _judged(base, month, everything=everything, mending=report is not None)
        except GeneratorError as error:
            told = Answer({}, problems=answer.told(error), exit_code=error.exit_code)
            _deliver(told, report, summary, b"")
            if form is CheckFormat.GITHUB:
                _annotate(told.problems)
            raise
        _deliver(found, report, summary, patch)
        if form is CheckFormat.GITHUB:
            _annotate(found.problems)
        return found

    answer.answer("check", Format.JSON if form is CheckFormat.JSON else Format.TEXT, work)


def _judged(base: str | None, month: str | None, *, everything: bool, mending: bool) -> tuple[Answer, bytes]:
    from generator.cli import check_text
    from generator.commands import check as command
    from generator.commands import mending as mends
    from generator.commands.workspace import Workspace

    workspace = Workspace.find(answer.here())
    found = command.check(workspace, base=base, everything=everything, month=month)
    patch = mends.mend(workspace, found.problems, base=base) if mending else b""
    code = EXIT_DRIFT * answer.has_errors(found.problems)
    return Answer(_data(found), check_text.checked(found), found.problems, code), patch


def _data(found: "Checked") -> dict[str, object]:
    from generator.plan import room_as_data

    return {
        "specs": found.specs,
        "built": list(found.builds.built),
        "unchanged": list(found.builds.unchanged),
        "untracked": list(found.untracked),
        "pools": {name: room_as_data(one) for name, one in found.rooms},
    }


def _annotate(problems: tuple[Problem, ...]) -> None:
    from generator.cli.annotations import annotations

    for line in annotations(problems):
        print(line)


def _deliver(found: Answer, report: Path | None, summary: Path | None, patch: bytes) -> None:
    """Write the files that were asked for. Raises StorageError."""
    from generator.cli import check_markdown
    from generator.formats.sarif import sarif
    from generator.repo import files

    if report is not None:
        status = STATUS.get(found.exit_code, "error")
        document = sarif(found.problems, version=__version__)
        written = {
            "check.json": answer.envelope("check", status, found.data, found.problems).encode(),
            "check.sarif": json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "replace"),
            **({PATCH: patch} if patch else {}),
        }
        for name, content in written.items():
            files.write_file(report.absolute() / name, content.rstrip(b"\n") + b"\n")
    if summary is not None:
        said = check_markdown.verdict(found.problems, patch=PATCH if patch else None)
        files.append(summary.absolute(), said.encode("utf-8", "replace"))
