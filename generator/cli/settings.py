"""What fills in the settings: pin, data digest."""

from pathlib import Path
from typing import Annotated

import typer

from generator.cli import answer, completing
from generator.cli.answer import Answer, Format, FormatOption
from generator.cli.panels import PLATFORM

data = typer.Typer(help="Data that trials read.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands of whoever owns the settings."""
    app.command("pin", rich_help_panel=PLATFORM)(pin)
    app.add_typer(data, name="data", rich_help_panel=PLATFORM)


def pin(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="An image of sweepledger.yaml, by its name.",
            autocompletion=completing.images,
        ),
    ],
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="TAG", help="The tag; default: the one in the settings.")
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option("--repository", metavar="REPO", help="Where it lies: adds the image, or moves it."),
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Ask the registry what a tag stands for, and write the digest into sweepledger.yaml."""

    def work() -> Answer:
        from generator.commands import pin as command
        from generator.commands.workspace import Workspace

        workspace = Workspace.find(answer.here(), unpinned=True)
        found = command.pin(workspace, name, repository=repository, tag=tag)
        shown = [f"{name}: {found.reference}" + ("" if found.is_new else " (as it was)")]
        if found.is_new:
            shown.append("next: commit sweepledger.yaml; `sweep update NAME` takes it into a sweep")
        answered = {
            "image": name,
            "reference": found.reference,
            "digest": found.digest,
            "before": found.before,
            "changed": found.is_new,
        }
        return Answer(answered, tuple(shown))

    answer.answer("pin", form, work)


@data.command("digest")
def digest(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The folder that trials will read.")],
    form: FormatOption = Format.TEXT,
) -> None:
    """Compute the digest that datasets.NAME.digest must hold for a folder."""

    def work() -> Answer:
        from generator.commands import data as command

        with answer.console(stderr=True).status("reading", spinner="line") as told:
            found = command.digest(
                path,
                progress=lambda done: told.update(f"read {done.bytes / 1e9:.1f} GB in {done.files} files"),
            )
        answered = {"path": str(path), "digest": found.digest, "files": found.files, "bytes": found.bytes}
        return Answer(answered, (found.digest,))

    answer.answer("data digest", form, work)
