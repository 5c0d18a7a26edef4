"""Commands that read results: results, logs, log, status, why, budget, metrics, site, sync."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweepledger.cli import completion, response
from sweepledger.cli.envelopes import budget_data, ranked_data
from sweepledger.cli.options import (
    BaseOption,
    ByPodOption,
    ContextOption,
    FormatOption,
    ImageOption,
    InOption,
    MonthOption,
    OptionalSweepArgument,
    PatienceOption,
    StateOption,
    SweepOrSpecArgument,
    reader_pod,
)
from sweepledger.cli.response import Format, Response

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sweepledger.commands.reports.budget import MonthBudget
    from sweepledger.commands.reports.outputs import Logs
    from sweepledger.commands.reports.results import RankedTrials
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


def metrics(
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="Write to this file, atomically, instead of stdout."),
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Print metrics for Prometheus that only git has.

    These are active batches, the last results commit, and budgets. In Prometheus' text format, for the textfile
    collector of node_exporter or for a Pushgateway.
    """

    def work() -> Response:
        from sweepledger import storage
        from sweepledger.commands.reports import metrics as command
        from sweepledger.commands.repository.workspace import Workspace

        values = command.metrics(Workspace.find(response.current_folder()))
        text = command.metrics_text(values)
        data = {
            "metrics": [
                {"name": metric.name, "labels": dict(labels), "value": value}
                for metric in values
                for labels, value in metric.samples
            ]
        }
        if to is not None:
            storage.write_file(storage.output_path(to), text.encode())
            return Response({**data, "file": str(to)}, (f"wrote {to}",))
        return Response(data, tuple(text.splitlines()))

    response.respond("cluster metrics", form, work)


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


def log(
    name: OptionalSweepArgument = None,
    last: Annotated[
        int | None, typer.Option("--last", min=1, metavar="N", help="Show only the last N entries.")
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show the history of sweeps in git.

    It lists specs, batches, results, and the best metric with its changes. With --last and without a name, only the
    last commits are read, so that the time does not grow with the history.
    """

    def work() -> Response:
        from sweepledger.cli.text import results
        from sweepledger.commands.reports import log as command
        from sweepledger.commands.repository.workspace import Workspace

        history = command.log(Workspace.find(response.current_folder()), name, last=last)
        entries = [
            {
                "sweep": entry.sweep,
                "kind": entry.kind,
                "commit": entry.commit.id,
                "author": entry.commit.author,
                "date": entry.commit.date,
                "text": entry.text,
                "best": entry.best,
                "change": entry.change,
            }
            for entry in history.entries
        ]
        return Response({"entries": entries}, results.log_text(history.entries, history.sweep))

    response.respond("log", form, work)


def budget(base: BaseOption = None, month: MonthOption = None, form: FormatOption = Format.TEXT) -> None:
    """Show each team's used, reserved and remaining budget."""

    def work() -> Response:
        from sweepledger.commands.reports import budget as command
        from sweepledger.commands.repository.workspace import Workspace

        month_budget = command.budget(Workspace.find(response.current_folder()), base=base, month=month)
        return Response(budget_data(month_budget), tuple(_budget_tables(month_budget)), month_budget.problems)

    response.respond("cluster budget", form, work)


def site(
    revision: Annotated[
        str, typer.Argument(metavar="[COMMIT]", help="Commit, branch or tag that is shown.")
    ] = "HEAD",
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder of the site: new, empty, or of an earlier site."),
    ] = Path("site"),
    serve: Annotated[
        bool,
        typer.Option(
            "--serve", help="Show it in a browser of this machine: follow the branch, and what runs."
        ),
    ] = False,
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, metavar="N", help="Port of --serve on 127.0.0.1; 0: a free one."
        ),
    ] = 8571,
    state: StateOption = None,
    cluster: Annotated[
        bool,
        typer.Option("--cluster", help="With --serve, read running trials from the cluster, with kubectl."),
    ] = False,
    context: ContextOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Build or serve a site to browse and compare sweeps and trials.

    It opens from a folder or from any web server, and makes no network requests. Only the pages of sweeps that
    changed since the last build are computed. With --serve, a server on this machine builds it again when the
    branch moves, and shows the curves of running trials, which are never committed.
    """

    def work() -> Response:
        from rich.text import Text

        from sweepledger.commands.reports import site as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        if serve:
            kubectl = cluster or context is not None
            return _serve_site(workspace, out, revision, port, state=state, context=context, kubectl=kubectl)
        built = command.site(workspace, out, revision)
        data = {
            "out": str(built.out),
            "commit": built.commit,
            "sweeps": built.sweeps,
            "rebuilt": list(built.rebuilt),
            "unreadable": list(built.unreadable),
            "files": {"total": built.files, "written": built.written, "removed": built.removed},
        }
        lines = (
            *(Text(f"not shown: {line}", "yellow") for line in built.unreadable),
            Text(
                f"{built.out / command.HOME}: {built.sweeps} sweep(s), {len(built.rebuilt)} computed,"
                f" {built.written} file(s) written"
            ),
        )
        return Response(data, lines)

    response.respond("site", form, work)


def _serve_site(
    workspace: "Workspace",
    out: Path,
    revision: str,
    port: int,
    *,
    state: Path | None,
    context: str | None,
    kubectl: bool,
) -> Response:
    """Serve the site until the user interrupts it."""
    from sweepledger.commands.reports.site_server import SiteServer
    from sweepledger.engine.cluster.kubectl import Kubectl
    from sweepledger.repo.state import state_folder

    server = SiteServer(
        workspace,
        out,
        revision,
        state=state_folder(workspace.repository, state),
        kubectl=Kubectl(context) if kubectl else None,
    ).listen(port)
    with suppress(KeyboardInterrupt):
        print(f"{server.url} shows {revision} until Ctrl-C", file=sys.stderr, flush=True)
        server.serve()
    return Response({"url": server.url})


def _budget_tables(budget: "MonthBudget") -> "Iterator[RenderableType]":
    from rich.text import Text

    from sweepledger.cli.text.style import new_table
    from sweepledger.plan import BudgetUnit

    if not budget.balances:
        yield Text("sweepledger.yaml has no budgets")
        return
    money = budget.currency or "money"
    teams = new_table(budget.month, "unit", "used", "reserved", "remaining", "limit")
    for balance in budget.balances:
        unit = "GPU hours" if balance.unit is BudgetUnit.GPU_HOURS else money
        amounts = (balance.used, balance.reserved, balance.remaining, balance.limit)
        style = "red" if balance.remaining < 0 else None
        teams.add_row(balance.team, unit, *map(_amount_cell, amounts), style=style)
    yield teams
    if budget.shares:
        shares = new_table("sweep", "GPU hours", "reserved", money, "reserved")
        for share in budget.shares:
            used, reserved = share.used, share.reserved
            amounts = (used.gpu_hours, reserved.gpu_hours, used.money, reserved.money)
            shares.add_row(share.sweep, *map(_amount_cell, amounts))
        yield Text("")
        yield shares
    for batch in budget.unread:
        yield Text(f"{batch} does not contain its resources: no cost is counted", "yellow")
    for batch in budget.reported:
        yield Text(f"{batch}: some trials were not observed, and are charged by what they reported", "dim")


def _amount_cell(amount: float) -> str:
    return f"{amount:,.2f}"
