"""Commands for merged batches: collect, next, cancel, pause, resume, scale, retry, rename, expire and submit."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sweepledger.cli import response
from sweepledger.cli.envelopes import submitted_data
from sweepledger.cli.options import (
    BatchOption,
    ContextOption,
    FormatOption,
    SweepArgument,
)
from sweepledger.cli.response import (
    SHORT_COMMIT,
    Format,
    Response,
)
from sweepledger.cli.text.values import count_text

if TYPE_CHECKING:
    from sweepledger.commands.cancel import BatchesChange
    from sweepledger.commands.repository.workspace import Workspace
    from sweepledger.commands.retry import Retried
    from sweepledger.commands.submit import Submitted


class UnfinishedStatus(StrEnum):
    """Statuses of trials that can be retried."""

    FAILED = "failed"
    MISSING = "missing"
    CANCELLED = "cancelled"


def cancel(
    name: SweepArgument,
    batch: BatchOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Request the cancelled trials again after they are recorded.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Cancel running batches by a commit.

    It adds their names to the spec, and moves their overlays to the archive. The commit takes effect when it is pushed
    or merged.
    """

    def work() -> Response:
        from sweepledger.commands import cancel as command
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.structs.settings import Controller

        workspace = Workspace.find(response.current_folder())
        cancelled = command.cancel(workspace, name, batch=batch, replace=replace)
        batches, commit = ", ".join(cancelled.batches), cancelled.commit[:SHORT_COMMIT]
        lines = [
            f"cancelled {batches} ({count_text(cancelled.trials, 'trial')}) in {commit}",
            "next: push or merge the commit; the controller then ends the pods, and the collector records the rest"
            if workspace.settings.controller is not Controller.NONE
            else f"next: `sweep run {cancelled.sweep}` records the rest here; or push or merge the commit",
        ]
        if replace:
            lines.append(f"then: `sweep generate {cancelled.sweep}` requests the cancelled trials again")
        data = {
            "sweep": cancelled.sweep,
            "batches": list(cancelled.batches),
            "trials": cancelled.trials,
            "commit": cancelled.commit,
            "replaced": cancelled.is_replaced,
        }
        return Response(data, tuple(lines))

    response.respond("cancel", form, work)


def pause(name: SweepArgument, batch: BatchOption = None, form: FormatOption = Format.TEXT) -> None:
    """Pause running batches until they are resumed.

    It commits that none of their trials may run until `sweep cluster resume`. The commit takes effect when it is pushed
    or merged. A cluster ends the pods, and no attempt counts as failed.
    """

    def work() -> Response:
        from sweepledger.commands.cancel import pause as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        return _running_changed("paused", workspace, command(workspace, name, batch=batch))

    response.respond("cluster pause", form, work)


def resume(name: SweepArgument, batch: BatchOption = None, form: FormatOption = Format.TEXT) -> None:
    """Resume paused batches.

    It commits that their trials run again. The commit takes effect when it is pushed or merged.
    """

    def work() -> Response:
        from sweepledger.commands.cancel import resume as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        return _running_changed("resumed", workspace, command(workspace, name, batch=batch))

    response.respond("cluster resume", form, work)


def scale(
    name: SweepArgument,
    parallelism: Annotated[int, typer.Argument(min=1, help="How many trials of a batch run at once.")],
    batch: BatchOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Change the parallelism of running batches.

    It commits the number for batches of shape `indexed`. The commit takes effect when it is pushed or merged.
    `run.parallelism` in the spec decides for later batches.
    """

    def work() -> Response:
        from sweepledger.commands.cancel import scale as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        return _running_changed("scaled", workspace, command(workspace, name, parallelism, batch=batch))

    response.respond("cluster scale", form, work)


def _running_changed(verb: str, workspace: "Workspace", change: "BatchesChange") -> Response:
    from sweepledger.structs.settings import Controller

    controlled = workspace.settings.controller is not Controller.NONE
    batches, commit = ", ".join(change.batches), change.commit[:SHORT_COMMIT]
    lines = (
        f"{verb} {batches} ({count_text(change.trials, 'trial')}) in {commit}",
        "next: push or merge the commit; the controller applies it"
        if controlled
        else "next: `sweep run` and `sweep cluster local` obey within seconds once their branch has the commit",
    )
    data = {
        "sweep": change.sweep,
        "batches": list(change.batches),
        "trials": change.trials,
        "commit": change.commit,
    }
    return Response(data, lines)


def retry(
    name: SweepArgument,
    failed: Annotated[bool, typer.Option("--failed", help="Retry failed trials only.")] = False,
    missing: Annotated[bool, typer.Option("--missing", help="Retry trials without a record only.")] = False,
    status: Annotated[
        list[UnfinishedStatus] | None,
        typer.Option(
            "--status", help="Retry trials with this status only; can be repeated. Default: all three."
        ),
    ] = None,
    batch: BatchOption = None,
    update: Annotated[
        bool, typer.Option("--update", help="Retry them with the current code, image and data.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Retry failed, missing and cancelled trials.

    It commits a batch that contains them.

    With --update they run the current program, all others stay: lock and report say so, and rankings by program
    leave them out (`sweep results --all-programs` ranks all).
    """

    def work() -> Response:
        from sweepledger.commands import retry as command
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.structs.record import RETRYABLE_STATUSES, Status
        from sweepledger.structs.settings import Controller

        selected = [
            *(status or ()),
            *[UnfinishedStatus.FAILED] * failed,
            *[UnfinishedStatus.MISSING] * missing,
        ]
        statuses = frozenset(map(Status, selected)) or RETRYABLE_STATUSES
        workspace = Workspace.find(response.current_folder())
        retried = command.retry(workspace, name, batch=batch, statuses=statuses, update=update)
        return _retry_response(retried, is_cluster=workspace.settings.controller is not Controller.NONE)

    response.respond("retry", form, work)


def _retry_response(retried: "Retried", *, is_cluster: bool) -> Response:
    generated = retried.generated
    push = "push the commit, or open a pull request"
    trials = count_text(generated.retried, "trial")
    first_line = (
        f"{retried.batch} retries {trials}, in {retried.commit[:SHORT_COMMIT]}"
        if retried.commit
        else f"{retried.batch} retries {trials} already"
    )
    data = {
        "sweep": generated.sweep.name,
        "batch": retried.batch,
        "retried": generated.retried,
        "trials": generated.trials - generated.known,
        "commit": retried.commit,
        "read_again": len(retried.outputs.files) if retried.outputs else 0,
    }
    next_line = f"next: {push}" if is_cluster else f"next: `sweep run {generated.sweep.name}` here; or {push}"
    read = retried.outputs.lines if retried.outputs and not is_cluster else ()
    return Response(data, (first_line, *read, next_line), generated.warnings)


def rename(
    name: SweepArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
    form: FormatOption = Format.TEXT,
) -> None:
    """Give a sweep another name, and take its results along.

    It makes two commits, and nothing runs. A spec that was moved by hand is taken as it is. What was recorded under the
    old name stays in git, too.
    """

    def work() -> Response:
        from sweepledger.commands.rename import rename as command
        from sweepledger.commands.repository.workspace import Workspace

        renamed = command(Workspace.find(response.current_folder()), name, new)
        lines = [
            f"{name} is {new}, with {count_text(renamed.trials, 'recorded trial')}, in {renamed.commit[:SHORT_COMMIT]}"
        ]
        if renamed.left:
            lines.append(f"{count_text(renamed.left, 'trial')} with other parameters stay under {name}")
        lines.append(f"next: `sweep results {new}`")
        data = {
            "sweep": new,
            "previous": name,
            "batches": list(renamed.batches),
            "trials": renamed.trials,
            "remaining": renamed.left,
            "commit": renamed.commit,
        }
        return Response(data, tuple(lines))

    response.respond("rename", form, work)


def submit(
    name: Annotated[str, typer.Argument(metavar="NAME|BATCH", help="Sweep, or one of its batches.")],
    context: ContextOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Validate all objects on the server, and create nothing.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Create deleted Jobs again if git has no result of them.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Create the Jobs of a merged batch, once, without GitOps."""

    def work() -> Response:
        from sweepledger.commands import submit as command
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.engine.cluster.kubectl import Kubectl

        workspace = Workspace.find(response.current_folder())
        submitted = command.submit(workspace, name, Kubectl(context), dry_run=dry_run, again=again)
        data = {"dry_run": dry_run, "batches": list(map(submitted_data, submitted))}
        return Response(data, _submitted_lines(submitted, dry_run=dry_run))

    response.respond("submit", form, work)


def _submitted_lines(submitted: "tuple[Submitted, ...]", *, dry_run: bool) -> tuple[str, ...]:
    verb = "would create" if dry_run else "created"
    lines = [
        f"{batch.batch}: {verb} {len(batch.created)} object(s), {len(batch.running)} exist already, "
        f"{batch.recorded} trial(s) recorded"
        for batch in submitted
    ]
    return (
        *lines,
        *(() if dry_run else ("next: `sweep cluster collect --by-pod` when the Jobs have ended",)),
    )
