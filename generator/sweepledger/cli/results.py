"""Commands that read results: results, logs, log, status, why, budget, metrics, site, sync."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweepledger.cli import completion, response
from sweepledger.cli.envelopes import ranked_data, status_response, sweep_status_data
from sweepledger.cli.options import (
    ByPodOption,
    ContextOption,
    FormatOption,
    ImageOption,
    InOption,
    OptionalSweepArgument,
    PatienceOption,
    StateOption,
    SweepOrSpecArgument,
    reader_pod,
)
from sweepledger.cli.response import Format, Response

if TYPE_CHECKING:
    from rich.text import Text

    from sweepledger.commands.reports.outputs import Logs
    from sweepledger.commands.reports.results import RankedTrials
    from sweepledger.commands.reports.status import Origin, SweepStatus
    from sweepledger.commands.reports.sync import Synced
    from sweepledger.commands.repository.workspace import Workspace


def status(
    name: OptionalSweepArgument = None,
    state: StateOption = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Also read the state of trials from the cluster, with kubectl.")
    ] = False,
    context: ContextOption = None,
    cluster_name: InOption = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again every two seconds until no batch is active.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show how many trials are pending, running and finished.

    Planned trials are not merged yet; finished ones are counted by status. Results from a cluster are shown after they
    are committed and pulled. With --cluster, the current state of trials in the cluster is shown, too.
    """

    def work() -> Response:
        from sweepledger.cli import cluster_status
        from sweepledger.commands.reports import status as command
        from sweepledger.commands.reports import why as why_reports
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.engine.cluster.kubectl import Kubectl
        from sweepledger.engine.local.volumes import StateFolders
        from sweepledger.repo.state import disk_used, state_folder

        workspace = Workspace.find(response.current_folder())
        if cluster_name is not None:
            workspace = workspace.in_cluster(cluster_name)
        kubectl = Kubectl(context) if cluster or context or cluster_name else None
        folder = state_folder(workspace.repository, state)
        statuses = command.status(workspace, name, state=folder, kubectl=kubectl)
        with suppress(KeyboardInterrupt):  # which ends the watch, and interrupts nothing else
            while watch and any(status.active for status in statuses):
                _show_again(statuses)
                time.sleep(WATCH_SECONDS)
                statuses = command.status(workspace, name, state=folder, kubectl=kubectl)
        recorded = command.last_results_commit(workspace)
        branch_lines = (
            *_results_commit_lines(recorded, statuses),
            *_progress_branch_lines(workspace, statuses),
            *_next_lines(workspace, statuses),
        )
        if kubectl is not None:
            collector = why_reports.readable_collector(workspace, kubectl)
            return cluster_status.cluster_status_response(statuses, collector, *branch_lines)
        used, is_whole = disk_used(folder, StateFolders(folder).pods)
        lines = (
            *_origin_lines(status.origin for status in statuses),
            *branch_lines,
            *_disk_lines(folder, used, is_whole=is_whole),
        )
        shown = status_response([sweep_status_data(status) for status in statuses], statuses, *lines)
        more = {
            "last_results_commit": _time_data(recorded),
            "disk": {"bytes": used, "is_complete": is_whole},
        }
        return replace(shown, data={**shown.data, **more})

    response.respond("status", form, work)


def why(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|TRIAL",
            help="Name or spec of a sweep, or a trial id or the beginning of one.",
            autocompletion=completion.sweeps,
        ),
    ],
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not read the cluster: explain what git contains.")
    ] = False,
    context: ContextOption = None,
    cluster: InOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Explain why trials do not run, and what to do about it.

    The explanation leads from the spec to the recorded result. The cluster is read with kubectl if the settings name a
    controller, or if --context is given.
    """

    def work() -> Response:
        from sweepledger.cli import cluster_status
        from sweepledger.commands.reports import why as command
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.engine.cluster.kubectl import Kubectl
        from sweepledger.structs.settings import Controller

        workspace = Workspace.find(response.current_folder())
        if cluster is not None:
            workspace = workspace.in_cluster(cluster)
        is_followed = workspace.settings.controller is not Controller.NONE or context is not None
        kubectl = Kubectl(context) if is_followed and not offline else None
        return cluster_status.explanation_response(command.why(workspace, name, kubectl=kubectl))

    response.respond("why", form, work)


WATCH_SECONDS = 2.0


def _show_again(statuses: "Sequence[SweepStatus]") -> None:
    """Print the state of sweeps in the place of the last one on a terminal, else below it."""
    from sweepledger.cli.text.results import status_text

    console = response.open_console(stderr=True)
    console.clear()
    console.print(*status_text(statuses), sep="\n")


def _time_data(seconds: int | None) -> str | None:
    from sweepledger.formats.record_json import format_time

    return None if seconds is None else format_time(seconds)


MEBIBYTE = 1 << 20


def _disk_lines(folder: Path, used: int, *, is_whole: bool) -> "Iterator[Text]":
    """Yield what the state folder takes on the disk, from a mebibyte on."""
    from rich.text import Text

    if used >= MEBIBYTE:
        least = "" if is_whole else "at least "
        yield Text(
            f"{folder.name} takes {least}{used // MEBIBYTE:,} MiB of the disk: code, data and results of trials"
        )


def _results_commit_lines(recorded: int | None, statuses: "Iterable[SweepStatus]") -> "Iterator[Text]":
    """Yield when results were last committed, while batches are active."""
    from rich.text import Text

    if recorded is not None and any(status.active for status in statuses):
        yield Text(f"last results commit: {_time_data(recorded)}")


def _progress_branch_lines(workspace: "Workspace", statuses: "Iterable[SweepStatus]") -> "Iterator[Text]":
    """Yield the progress branches of sweeps with active batches, if the settings enable such branches."""
    from rich.text import Text

    from sweepledger.commands.collection.progress_branch import branch_name

    settings = workspace.settings
    if settings.results.progress_minutes is not None:
        for status in statuses:
            if status.active:
                branch = branch_name(status.sweep)
                yield Text(f"{status.sweep}: intermediate results: branch {branch} of {workspace.remote}")


def _next_lines(workspace: "Workspace", statuses: "Iterable[SweepStatus]") -> "Iterator[Text]":
    """Yield doubts, what vouches for no results, which results are not pulled, and trials that were interrupted."""
    from rich.text import Text

    from sweepledger.results.paths import LAPTOP_WARNING

    settings = workspace.settings
    for status in statuses:
        yield from (Text(f"{status.sweep}: {doubt}", "yellow") for doubt in status.doubts)
        if status.laptop:
            yield Text(f"{status.sweep}: {LAPTOP_WARNING}: {', '.join(status.laptop)}", "yellow")
        if status.counts["recorded"]:
            pull = f"`git pull {workspace.remote} {settings.branch}`"
            yield Text(
                f"{status.sweep}: recorded on {workspace.remote}/{settings.branch}: {pull} brings results here"
            )
        if status.counts["interrupted"]:
            yield Text(f"{status.sweep}: interrupted: `sweep run {status.sweep}` continues it here")


def results(
    name: SweepOrSpecArgument,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort", metavar="METRIC", help="Sort by this metric, or by seconds; default: the objective."
        ),
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=1, metavar="K", help="Show the first K trials only.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            help="Show trials with COLUMN=VALUE only, or !=, <, <=, >, >=; can be repeated.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="A,B", help="Show these columns: parameters, metrics, status …"),
    ] = None,
    digits: Annotated[
        int,
        typer.Option("--digits", min=1, max=17, help="Round numbers of --columns to N significant digits."),
    ] = 6,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="csv|json|parquet", help="Print all columns in a format for other programs."
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="With --output: write to this file instead of stdout."),
    ] = None,
    all_programs: Annotated[
        bool,
        typer.Option(
            "--all-programs",
            help="Rank the trials of all programs together, not those of HEAD's before others.",
        ),
    ] = False,
    state: StateOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show a sweep's finished trials, best first.

    If its trials ran several programs, those of HEAD's code and spec are ranked, and the others listed after them.
    Trials that have finished here and are not recorded yet are marked.
    """

    def work() -> Response:
        from sweepledger.cli.text import results as text
        from sweepledger.commands.reports import results as command
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.errors import IdleError
        from sweepledger.repo.state import state_folder

        workspace = Workspace.find(response.current_folder())
        try:
            ranked = command.results(
                workspace,
                name,
                state=state_folder(workspace.repository, state),
                by=sort,
                top=top,
                all_programs=all_programs,
                where=tuple(map(command.RowCondition.parse, where or ())),
            )
        except IdleError as idle:
            if output is not None:
                raise
            return response.idle_response(idle, {"sweep": name, "sorted_by": sort, "trials": []})
        if output is not None:
            return _write_results(ranked, output, to)
        if columns is None:
            return Response(ranked_data(ranked), text.results_text(ranked))
        chosen = [column.strip() for column in columns.split(",")]
        command.require_columns(ranked.table, chosen)
        return Response(ranked_data(ranked), text.chosen_columns_text(ranked, chosen, digits=digits))

    response.respond("results", form, work)


def _write_results(ranked: "RankedTrials", output: str, to: Path | None) -> Response:
    """Write trials in a format for other programs; the response has no text if they went to standard output."""
    from sweepledger import storage
    from sweepledger.commands.reports import results as command
    from sweepledger.commands.repository.workspace import Workspace
    from sweepledger.errors import UsageError

    if output not in set(command.ResultsFormat):
        raise UsageError(f"--output must be one of {', '.join(command.ResultsFormat)}, got {output!r}")
    form = command.ResultsFormat(output)
    if to is None and form is command.ResultsFormat.PARQUET and sys.stdout.isatty():
        raise UsageError(
            "parquet cannot be printed to a terminal", hint="use --to FILE, or redirect the output"
        )
    content = command.encode_results(Workspace.find(response.current_folder()), ranked, form)
    if to is not None:
        storage.write_file(storage.output_path(to), content)
        data = {"sweep": ranked.sweep, "trials": len(ranked.rows), "file": str(to)}
        return Response(data, (f"wrote {to}",))
    with response.ignore_broken_pipe():
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    return Response({"sweep": ranked.sweep, "trials": len(ranked.rows)})


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
) -> None:
    """Show what each attempt of a trial printed.

    Head and tail of it are stored next to the record.
    """

    def work() -> Response:
        from sweepledger.cli.text import results as text
        from sweepledger.commands.reports import outputs as command
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.errors import UsageError
        from sweepledger.repo.state import state_folder

        workspace = Workspace.find(response.current_folder())
        if follow:
            if failed or form is Format.JSON:
                option = "--failed" if failed else "--format json"
                raise UsageError(f"--follow cannot be combined with {option}")
            if by_pod or context is not None:
                raise UsageError(
                    "--follow reads trials of this machine, no volume of a cluster",
                    hint="`kubectl logs --follow --selector=sweepledger.dev/sweep=NAME --prefix`, with the "
                    f"namespace {workspace.settings.namespace}, follows pods",
                )
            return _follow(workspace, trial, state_folder(workspace.repository, state))
        if failed and by_pod:
            raise UsageError("--failed cannot be combined with --by-pod", hint="name one trial instead")
        if failed:
            kept = command.failed_logs(workspace, trial, state=state_folder(workspace.repository, state))
            return Response({"trials": list(map(_logs_data, kept))}, text.failed_logs_text(kept))
        if by_pod:
            pod = reader_pod(workspace, context, image, patience)
            logs = command.logs_by_pod(workspace, trial, pod)
        else:
            logs = command.logs(workspace, trial, state=state_folder(workspace.repository, state))
        return Response(_logs_data(logs), text.logs_text(logs))

    response.respond("logs", form, work)


def _follow(workspace: "Workspace", reference: str, state: Path) -> Response:
    """Print lines as they come, with the trial's id in front of them if several may print."""
    from rich.text import Text

    from sweepledger.commands.reports import live_output

    console = response.open_console()
    for line in live_output.follow(workspace, reference, state=state):
        text = Text(response.escape_control_characters(line.text))
        is_one = line.trial.startswith(reference.rpartition("/")[2])
        console.print(text if is_one else Text(f"{line.trial}  ", "dim") + text)
    return Response({})


def _logs_data(logs: "Logs") -> dict[str, object]:
    attempts = [
        {"uid": attempt.uid, "stdout": attempt.out, "stderr": attempt.err} for attempt in logs.attempts
    ]
    return {"trial": logs.trial, "batch": logs.batch, "attempts": attempts}


def _origin_lines(origins: "Iterable[Origin | None]") -> "Iterator[Text]":
    """Yield the files of sweeps, and the pull requests that added their batches."""
    from rich.text import Text

    for origin in filter(None, origins):
        numbered = (f"{folder} (#{number})" if number else folder for folder, number in origin.batches)
        yield from (Text(f"  {path}") for path in (origin.spec, *numbered, origin.results) if path)


def sync(
    store: Annotated[
        str | None,
        typer.Argument(
            metavar="[STORE]",
            help="mlflow, optuna, wandb, tensorboard, parquet or model-card; default: the servers of results.sync.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Name of the sweep.", show_default=False, autocompletion=completion.sweeps
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="PLACE",
            help="Write there: a URI of MLflow, a URL of Optuna's storage or the file of its journal, else a folder.",
        ),
    ] = None,
    credentials: Annotated[
        Path | None,
        typer.Option(
            "--credentials",
            metavar="DIR",
            help="Without arguments: the files of DIR/STORE are environment variables for the store's client.",
        ),
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write recorded results to another tool's store.

    It writes each finished trial once, with its learning curves. Interrupted and repeated, it writes what the store
    lacks. It reads the results at HEAD. Without arguments, it writes all sweeps to the servers of `results.sync`, as
    the CronJob sweep-sync does.
    """

    def work() -> Response:
        from rich.text import Text

        from sweepledger.commands.reports import sync as command
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.errors import UsageError

        workspace = Workspace.find(response.current_folder())
        if store is not None and name is not None:
            synced = command.sync(workspace, store, name, place=to)
            return Response(synced.as_data(), _synced_lines(synced))
        if store is not None or to is not None:
            raise UsageError(
                "name a store and a sweep, or neither", hint="for example `sweep sync parquet NAME`"
            )
        stores = command.sync_stores(workspace, credentials=credentials)
        lines = [
            line
            for each in stores.synced
            for line in (Text(f"{each.store}: {each.sweep}", "bold"), *_synced_lines(each))
        ]
        lines += [Text(f"{kind}: {sweep}: nothing new") for kind, sweep in stores.unchanged]
        return Response(stores.as_data(), tuple(lines), failures=stores.failures)

    response.respond("sync", form, work)


def _synced_lines(synced: "Synced") -> "tuple[Text, ...]":
    from rich.text import Text

    from sweepledger.cli.text.values import count_text

    change = synced.change
    lines = [Text(f"{synced.place}: {count_text(change.added, 'trial')} added, {change.present} present")]
    if synced.unfinished:
        lines.append(Text(f"{count_text(synced.unfinished, 'trial')} without a final result: not written"))
    return (*lines, *(Text(remark, "yellow") for remark in change.remarks))
