"""What deletes old folders from the volumes: expire."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generator.cli import answer
from generator.cli.answer import EXIT_DRIFT, Answer, Format, FormatOption
from generator.cli.panels import RUN

if TYPE_CHECKING:
    from rich.text import Text

    from generator.commands.expire import Expired
    from generator.commands.expiring import Fate

EXIT_STORAGE = 3


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("expire", rich_help_panel=RUN)(expire)


def expire(
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="The results volume.")],
    checkpoints: Annotated[
        Path | None, typer.Option("--checkpoints", metavar="DIR", help="Its own volume, if there is one.")
    ] = None,
    artifacts: Annotated[
        Path | None, typer.Option("--artifacts", metavar="DIR", help="Its own volume, if there is one.")
    ] = None,
    remote: Annotated[
        str | None, typer.Option("--remote", metavar="NAME", help="Default: that of the settings.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be deleted; delete nothing.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Delete a batch's folders once its records have been on the remote's branch for `results.keep`.

    Exit 5 if a trial left a record that git lacks, 3 if the storage refused; the rest is done all the same.
    """

    def work() -> Answer:
        from generator.commands import expire as command
        from generator.commands.workspace import Workspace

        workspace = Workspace.find(answer.here())
        name = remote or workspace.settings.remote
        workspace.remote_url(name)
        named = {"results": results, "checkpoints": checkpoints, "artifacts": artifacts}
        volumes = {volume: place.absolute() for volume, place in named.items() if place is not None}
        found = command.expire(workspace, volumes, remote=name, now=time.time(), dry_run=dry_run)
        return _answer(found, dry_run=dry_run)

    answer.answer("expire", form, work)


def _answer(found: "Expired", *, dry_run: bool) -> Answer:
    from rich.text import Text

    from generator.commands.expiring import State

    code = EXIT_STORAGE if found.in_state(State.FAILED) else EXIT_DRIFT if found.in_state(State.LATE) else 0
    data = {
        "dry_run": dry_run,
        "keep_days": found.keep_days,
        "batches": [
            {
                "name": fate.batch,
                "state": str(fate.state),
                "volumes": list(fate.volumes),
                "reason": fate.says or None,
            }
            for fate in found.fates
        ],
        "unknown": list(found.unknown),
    }
    told = [_told(fate, dry_run=dry_run) for fate in found.fates]
    left = [Text(answer.visible(f"unknown: {path}: no batch's folder, left alone")) for path in found.unknown]
    counted = len(found.in_state(State.EXPIRED))
    verb = "would delete" if dry_run else "deleted"
    end = Text(f"{verb} the folders of {counted} of {len(found.fates)} batch(es), {found.keep_days} days old")
    return Answer(data, (*told, *left, end), exit_code=code)


def _told(fate: "Fate", *, dry_run: bool) -> "Text":
    from rich.text import Text

    from generator.commands.expiring import State

    if fate.state is State.EXPIRED:
        verb = "would delete" if dry_run else "deleted"
        return Text(answer.visible(f"{verb}: {fate.batch} ({', '.join(fate.volumes)})"))
    line = f"{fate.state}: {fate.batch}: {fate.says}"
    if fate.state is State.LATE:
        line += (
            "\n  hint: look at them, then delete the folder yourself; `sweep retry` asks for a trial again"
        )
    return Text(answer.visible(line))
