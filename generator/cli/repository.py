"""What changes a repository by one commit, or makes one: cancel, retry, init."""

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generator.cli import answer, completing
from generator.cli.answer import Answer, Format, FormatOption
from generator.cli.panels import PLATFORM, RUN
from generator.cli.values import counted

if TYPE_CHECKING:
    from generator.commands.retry import Retried

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The sweep's name.", autocompletion=completing.sweeps)
]


class Unfinished(StrEnum):
    """How trials end that may be asked for again."""

    FAILED = "failed"
    MISSING = "missing"
    CANCELLED = "cancelled"


class Applier(StrEnum):
    """What applies the overlays of a new repository."""

    ARGOCD = "argocd"
    FLUX = "flux"
    SUBMIT = "submit"
    NONE = "none"


class Generating(StrEnum):
    """When overlays are written."""

    IN_PULL_REQUEST = "in-pull-request"
    ON_MERGE = "on-merge"


class Asking(StrEnum):
    """Who asks for the next round of a search."""

    REVIEW = "review"
    WORKFLOW = "workflow"
    COLLECTOR = "collector"


def register(app: typer.Typer) -> None:
    """Add the commands that write commits of their own."""
    app.command("cancel", rich_help_panel=RUN)(cancel)
    app.command("retry", rich_help_panel=RUN)(retry)
    app.command("init", rich_help_panel=PLATFORM)(init)


def cancel(
    name: Name,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="BATCH",
            help="Only this one; default: all that run.",
            autocompletion=completing.batches,
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Ask for the cancelled trials again, once they are recorded.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Commit that batches must not go on: named in the spec, moved to the archive. Push it to take effect."""

    def work() -> Answer:
        from generator.commands import cancel as command
        from generator.commands.workspace import Workspace

        workspace = Workspace.find(answer.here())
        found = command.cancel(workspace, name, batch=batch, replace=replace)
        shown = [
            f"cancelled {', '.join(found.batches)} ({counted(found.trials, 'trial')}) in {found.commit[:8]}",
            "next: push or merge it; the controller ends what runs, the collector records what is there",
        ]
        if replace:
            shown.append(f"then: `sweep generate {found.sweep}` asks for the cancelled trials again")
        data = {
            "sweep": found.sweep,
            "batches": list(found.batches),
            "trials": found.trials,
            "commit": found.commit,
            "replaced": found.is_replaced,
        }
        return Answer(data, tuple(shown))

    answer.answer("cancel", form, work)


def retry(
    name: Name,
    failed: Annotated[bool, typer.Option("--failed", help="Only trials that failed.")] = False,
    missing: Annotated[bool, typer.Option("--missing", help="Only trials without a record.")] = False,
    status: Annotated[
        list[Unfinished] | None,
        typer.Option("--status", help="Only trials that ended so; may be repeated. Default: all three."),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="BATCH",
            help="Only this batch's; default: every batch's.",
            autocompletion=completing.batches,
        ),
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Commit a batch that asks once more for trials that did not come to an end of their own."""

    def work() -> Answer:
        from generator.commands import retry as command
        from generator.commands.workspace import Workspace
        from generator.structs.record import UNFINISHED, Status

        asked = [*(status or ()), *[Unfinished.FAILED] * failed, *[Unfinished.MISSING] * missing]
        statuses = frozenset(map(Status, asked)) or UNFINISHED
        found = command.retry(Workspace.find(answer.here()), name, batch=batch, statuses=statuses)
        return _retried(found)

    answer.answer("retry", form, work)


def _retried(found: "Retried") -> Answer:
    made = found.generated
    already = f"in {found.commit[:8]}" if found.commit else "already"
    shown = (
        f"{found.batch} asks for {counted(made.retried, 'trial')} once more, {already}",
        "next: push it, or open a pull request",
    )
    data = {
        "sweep": made.sweep.name,
        "batch": found.batch,
        "retried": made.retried,
        "trials": made.trials - made.known,
        "commit": found.commit,
    }
    return Answer(data, shown)


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where; must not exist, or be empty.")],
    name: Annotated[
        str | None, typer.Option("--name", help="What the repository is called; default: the folder's name.")
    ] = None,
    controller: Annotated[
        Applier, typer.Option("--controller", help="What applies the overlays; `none`: `sweep local`.")
    ] = Applier.NONE,
    generate: Annotated[
        Generating,
        typer.Option("--generate", help="When overlays are written; `on-merge`: by a workflow on main."),
    ] = Generating.IN_PULL_REQUEST,
    next_: Annotated[
        Asking, typer.Option("--next", help="Who asks for the next round of a search; `review`: a person.")
    ] = Asking.REVIEW,
    form: FormatOption = Format.TEXT,
) -> None:
    """Make a complete repository of sweeps, with a first commit, ready to push."""

    def work() -> Answer:
        from generator.commands import init as command

        made = command.init(
            folder, name=name, controller=str(controller), generate=str(generate), next_=str(next_)
        )
        shown = (
            f"made {folder}: {len(made.files)} files, commit {made.commit[:8]} on main",
            *_next(folder, made.example, controller),
        )
        data = {"folder": str(folder), "commit": made.commit, "files": list(made.files)}
        return Answer(data, shown)

    answer.answer("init", form, work)


def _next(folder: Path, example: str, controller: Applier) -> tuple[str, ...]:
    there = "" if folder.resolve() == answer.here() else f"cd {shlex.quote(str(folder))} && "
    return (
        f"next: {there}sweep try {example}",
        *_before_the_first_batch(controller),
        f"then: `sweep generate {example}`, and commit what it writes; README.md has the rest",
    )


def _before_the_first_batch(controller: Applier) -> tuple[str, ...]:
    if controller is Applier.NONE:
        return ()
    lines = ("before `sweep generate`: `sweep pin trainer --repository REPO --tag TAG`, and defaults.image",)
    if controller is Applier.SUBMIT:
        return lines
    return (
        *lines,
        f"before the cluster runs it: `sweep bootstrap {controller.value} --repo URL --branch main`",
    )
