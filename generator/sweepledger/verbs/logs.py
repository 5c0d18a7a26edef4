"""Show what each attempt of a trial printed.

Head and tail of it are stored next to the record.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli import completion
from sweepledger.cli.options import (
    ByPodOption,
    ContextOption,
    FormatOption,
    ImageOption,
    PatienceOption,
    StateOption,
    reader_pod,
)
from sweepledger.cli.response import Format, Response, current_folder, open_console
from sweepledger.cli.text.style import untrusted_text
from sweepledger.commands.reports import live_output
from sweepledger.commands.reports.outputs import Logs, failed_logs, logs_by_pod, trial_logs
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import UsageError
from sweepledger.repo.state import state_folder


def logs(
    trial: Annotated[
        str,
        typer.Argument(
            metavar="TRIAL|NAME",
            help="Trial id or the beginning of one, or SWEEP/TRIAL; with --failed or --follow, also a sweep.",
            autocompletion=completion.trials,
        ),
    ],
    failed: Annotated[
        bool, typer.Option("--failed", help="Show the end of the output of each failed trial of a sweep.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            "-f",
            help="Print what a trial, or each running trial of a sweep, prints on this machine, until it ends.",
        ),
    ] = False,
    state: StateOption = None,
    by_pod: ByPodOption = False,
    context: ContextOption = None,
    image: ImageOption = None,
    patience: PatienceOption = 300,
    form: FormatOption = Format.TEXT,
) -> Response:
    workspace = Workspace.find(current_folder())
    folder = state_folder(workspace.repository, state)
    if follow:
        if failed or form is Format.JSON:
            raise UsageError(f"--follow cannot be combined with {'--failed' if failed else '--format json'}")
        if by_pod or context is not None:
            raise UsageError(
                "--follow reads trials of this machine, no volume of a cluster",
                hint="`kubectl logs --follow --selector=sweepledger.dev/sweep=NAME --prefix`, with the "
                f"namespace {workspace.settings.namespace}, follows pods",
            )
        return _follow(workspace, trial, folder)
    if failed and by_pod:
        raise UsageError("--failed cannot be combined with --by-pod", hint="name one trial instead")
    if failed:
        kept = failed_logs(workspace, trial, state=folder)
        return Response({"trials": kept}, _failed_logs_text(kept))
    if by_pod:
        printed = logs_by_pod(workspace, trial, reader_pod(workspace, context, image, patience))
    else:
        printed = trial_logs(workspace, trial, state=folder)
    return Response(printed, logs_text(printed))


def _follow(workspace: Workspace, reference: str, state: Path) -> Response:
    """Print lines as they come, with the trial's id in front of them if several may print."""
    console = open_console()
    for line in live_output.follow(workspace, reference, state=state):
        text = untrusted_text(line.text)
        is_one = line.trial.startswith(reference.rpartition("/")[2])
        console.print(text if is_one else Text(f"{line.trial}  ", "dim") + text)
    return Response({})


def logs_text(logs: Logs) -> tuple[RenderableType, ...]:
    """Return what each attempt printed."""
    return tuple(
        part
        for attempt in logs.attempts
        for part in _attempt_log(attempt.uid, attempt.stdout, attempt.stderr)
    )


FAILED_LINES = 15
"""Last lines of stderr that are shown of each failed trial: a traceback ends with its cause."""


def _failed_logs_text(kept: Sequence[Logs]) -> tuple[RenderableType, ...]:
    """Return the end of what each failed trial wrote to stderr, in its last attempt that wrote there."""
    lines: list[RenderableType] = []
    for logs in kept:
        lines.append(Text(f"-- {logs.trial} of {logs.batch}", "bold"))
        text = next((attempt.stderr for attempt in reversed(logs.attempts) if attempt.stderr), "")
        end = "\n".join(text.rstrip("\n").split("\n")[-FAILED_LINES:])
        lines.append(untrusted_text(end or logs.error or "nothing on stderr is kept here"))
    return tuple(lines) or (Text("no trial has failed"),)


def _attempt_log(uid: str, out: str, err: str) -> Iterator[RenderableType]:
    if not (out or err):
        yield Text(f"-- {uid} printed nothing", "bold")
    for name, text in (("stdout", out), ("stderr", err)):
        if text:
            yield Text(f"-- {uid} {name}", "bold")
            yield untrusted_text(text.rstrip("\n"))
