"""The command `sweep`: its table of commands, its own options, and the handling of usage errors."""

import gc
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from sweepledger import __version__
from sweepledger.cli.author import export, generate, import_, new, schema, try_, update, validate, warm_start
from sweepledger.cli.lifecycle import (
    cancel,
    collect,
    collect_by_pod,
    expire,
    next_,
    pause,
    rename,
    resume,
    retry,
    scale,
    submit,
)
from sweepledger.cli.options import AUTHOR, PLATFORM, READ, RUN
from sweepledger.cli.platform import bootstrap, data_commands, doctor, init, pin, upgrade
from sweepledger.cli.response import EXIT_INTERRUPTED, ignore_broken_pipe, report_usage_error
from sweepledger.cli.results import budget, log, logs, metrics, results, show, site, status, sync, why
from sweepledger.cli.review import check, plan
from sweepledger.cli.run import local, run
from sweepledger.cli.verification import compare, explain, fetch, reproduce, verify

COMMANDS: Mapping[str, Mapping[str, Callable[..., None]]] = {
    AUTHOR: {
        "new": new,
        "import": import_,
        "warm-start": warm_start,
        "validate": validate,
        "plan": plan,
        "try": try_,
        "generate": generate,
        "update": update,
        "check": check,
        "export": export,
        "schema": schema,
    },
    RUN: {
        "run": run,
        "local": local,
        "next": next_,
        "collect": collect,
        "cancel": cancel,
        "pause": pause,
        "resume": resume,
        "scale": scale,
        "retry": retry,
        "rename": rename,
        "submit": submit,
        "collect-by-pod": collect_by_pod,
        "expire": expire,
    },
    READ: {
        "status": status,
        "why": why,
        "results": results,
        "logs": logs,
        "log": log,
        "show": show,
        "site": site,
        "sync": sync,
        "budget": budget,
        "metrics": metrics,
        "verify": verify,
        "compare": compare,
        "explain": explain,
        "reproduce": reproduce,
        "fetch": fetch,
    },
    PLATFORM: {
        "init": init,
        "bootstrap": bootstrap,
        "upgrade": upgrade,
        "doctor": doctor,
        "pin": pin,
    },
}
"""Each command under the heading of `sweep --help` that lists it, in the order of the help."""

SUMMARY = "Hyperparameter sweeps as reviewed commits: spec in, overlays out; results in, commit out."

app = typer.Typer(
    name="sweep",
    help=SUMMARY,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for panel, commands in COMMANDS.items():
    for command, function in commands.items():
        app.command(command, rich_help_panel=panel)(function)
app.add_typer(data_commands, name="data", rich_help_panel=PLATFORM)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"sweepledger {__version__}")
        raise typer.Exit


@app.callback(help=SUMMARY)
def sweep(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Take the options of `sweep` itself."""


def main() -> None:
    """Run `sweep`, and exit with the code of its response."""
    # SIGTERM is handled as Ctrl-C is: trials are ended, and the terminal is restored.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # With a hundred thousand trials in memory, the default thresholds spend a fifth of the time on collection.
    gc.set_threshold(200_000, 20, 20)
    code = 0
    with ignore_broken_pipe():
        code = _run_command_line(sys.argv[1:])
    # At its end, Python would search hundreds of modules for cycles: a fifth of the time of their imports.
    gc.freeze()
    sys.exit(code)


def _run_command_line(arguments: list[str]) -> int:
    try:
        code = app(arguments, standalone_mode=False)
    except typer.Exit as exit_:
        code = exit_.exit_code
    except typer.Abort:
        code = EXIT_INTERRUPTED
    except SystemExit:  # Typer and Rich exit like this if the reader of the help closed the pipe
        code = 0
    except typer.TyperException as error:
        # Typer's own parser of choices adds "Value error, ", which means nothing to the user.
        message = error.format_message().replace(": Value error, ", ": ", 1).rstrip(".")
        code = report_usage_error(arguments, message)
    return code if isinstance(code, int) else 0
