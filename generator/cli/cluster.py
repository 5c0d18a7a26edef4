"""What a person asks of a cluster: doctor, submit, collect-by-pod."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from generator.cli import answer
from generator.cli.answer import EXIT_DRIFT, Answer, Format, FormatOption
from generator.cli.panels import PLATFORM
from generator.cli.run import ContextOption

if TYPE_CHECKING:
    from rich.text import Text

    from generator.commands.submit import Submitted
    from generator.engine.cluster.health import Finding

PatienceOption = Annotated[
    float, typer.Option("--patience", min=1, metavar="SECONDS", help="How long to wait for a node.")
]


def register(app: typer.Typer) -> None:
    """Add the commands that speak to a cluster."""
    app.command("doctor", rich_help_panel=PLATFORM)(doctor)
    app.command("submit", rich_help_panel=PLATFORM)(submit)
    app.command("collect-by-pod", rich_help_panel=PLATFORM)(collect_by_pod)


def doctor(
    context: ContextOption = None,
    prove: Annotated[
        bool, typer.Option("--prove", help="Let a throw-away Job write results as a trial would.")
    ] = False,
    patience: PatienceOption = 300,
    form: FormatOption = Format.TEXT,
) -> None:
    """Say what of the bootstrap is in place and how to mend what is not; exit 5 if something is not."""

    def work() -> Answer:
        from generator.commands import doctor as command
        from generator.commands.workspace import Workspace
        from generator.engine.cluster.kubectl import Kubectl

        workspace = Workspace.find(answer.here())
        found = command.doctor(workspace, Kubectl(context), prove=prove, patience=patience)
        return Answer(
            {"findings": [finding.as_data() for finding in found.findings]},
            tuple(map(_shown, found.findings)),
            exit_code=EXIT_DRIFT * (not found.is_healthy),
        )

    answer.answer("doctor", form, work)


def _shown(finding: "Finding") -> "Text":
    from rich.text import Text

    says = f": {finding.says}" if finding.says else ""
    hint = f"\n  hint: {finding.hint}" if finding.hint and finding.state != "ok" else ""
    return Text(answer.visible(f"{finding.state}: {finding.part}: {finding.what}{says}{hint}"))


def submit(
    name: Annotated[str, typer.Argument(metavar="NAME|BATCH", help="A sweep, or one of its batches.")],
    context: ContextOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Let the server judge everything; create nothing.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Its Jobs are gone: create those that have no result in git.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Create a merged batch on a cluster that forbids GitOps; never twice."""

    def work() -> Answer:
        from generator.commands import submit as command
        from generator.commands.workspace import Workspace
        from generator.engine.cluster.kubectl import Kubectl

        workspace = Workspace.find(answer.here())
        found = command.submit(workspace, name, Kubectl(context), dry_run=dry_run, again=again)
        return Answer({"dry_run": dry_run, "batches": list(map(_submitted, found))}, _told(found, dry_run))

    answer.answer("submit", form, work)


def _submitted(found: "Submitted") -> dict[str, Any]:
    return {
        "batch": found.batch,
        "created": list(found.created),
        "present": list(found.running),
        "recorded": found.recorded,
    }


def _told(found: "tuple[Submitted, ...]", dry_run: bool) -> tuple[str, ...]:
    verb = "would create" if dry_run else "created"
    lines = [
        f"{one.batch}: {verb} {len(one.created)} object(s), {len(one.running)} there already, "
        f"{one.recorded} trial(s) recorded"
        for one in found
    ]
    return (*lines, *(() if dry_run else ("next: `sweep collect-by-pod` when they have ended",)))


def collect_by_pod(
    context: ContextOption = None,
    image: Annotated[
        str | None,
        typer.Option("--image", metavar="NAME", help="Image with sh and tar; default: the settings'."),
    ] = None,
    push: Annotated[
        bool, typer.Option("--push", help="Commit on the remote's branch instead of here.")
    ] = False,
    patience: PatienceOption = 300,
    form: FormatOption = Format.TEXT,
) -> None:
    """Collect from a volume that only pods can read: a short-lived pod sends what the trials left."""

    def work() -> Answer:
        from generator.cli import in_cluster
        from generator.cli.run import target_of
        from generator.commands import collect_by_pod as command
        from generator.commands.workspace import Workspace
        from generator.engine.cluster.kubectl import Kubectl

        workspace = Workspace.find(answer.here())
        target = target_of(workspace, push=push)
        found = command.collect_by_pod(workspace, target, Kubectl(context), image=image, patience=patience)
        return in_cluster.collected(workspace, found)

    answer.answer("collect-by-pod", form, work)
