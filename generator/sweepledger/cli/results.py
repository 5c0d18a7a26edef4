"""The command that writes results to other tools: sync."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweepledger.cli import completion, response
from sweepledger.cli.options import (
    FormatOption,
)
from sweepledger.cli.response import Format, Response

if TYPE_CHECKING:
    from rich.text import Text

    from sweepledger.commands.reports.sync import Synced


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
