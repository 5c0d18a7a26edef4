"""Commands that read results: results, logs, log, status, why, budget, metrics, site, sync."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweepledger.cli import completion, response
from sweepledger.cli.envelopes import ranked_data
from sweepledger.cli.options import (
    ByPodOption,
    ContextOption,
    FormatOption,
    ImageOption,
    InOption,
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
    from sweepledger.commands.reports.sync import Synced
    from sweepledger.commands.repository.workspace import Workspace


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
            help="Show trials that meet it only, such as \"rate < 0.1 and status == 'ok'\"; can be repeated.",
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
                where=where or (),
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
