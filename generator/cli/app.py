"""The command `sweep`: what it is called, what it says of itself, and where errors of use end."""

import gc
import signal
import sys
from typing import Annotated

import typer

from generator import __version__
from generator.cli import (
    audit,
    author,
    budget,
    check,
    cluster,
    exchange,
    expire,
    lint,
    plan,
    platform,
    read,
    repository,
    rounds,
    run,
    settings,
)
from generator.cli.answer import EXIT_INTERRUPTED, fail_usage, while_read

app = typer.Typer(
    name="sweep",
    help="Hyperparameter sweeps as reviewed commits: spec in, overlays out; results in, commit out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
author.register(app)
check.register(app)
plan.register(app)
exchange.register(app)
run.register(app)
rounds.register(app)
read.register(app)
budget.register(app)
audit.register(app)
platform.register(app)
lint.register(app)
cluster.register(app)
expire.register(app)
repository.register(app)
settings.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sweepledger {__version__}")
        raise typer.Exit


@app.callback()
def sweep(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and leave.")
    ] = False,
) -> None:
    """Hyperparameter sweeps as reviewed commits: spec in, overlays out; results in, commit out."""


def main() -> None:
    """Run `sweep` and leave with the exit code that its answer has."""
    # Told to end by a supervisor is told to end by a person: trials are ended, the cursor comes back.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # A hundred thousand trials are no garbage; looking through them again and again is a fifth of the time.
    gc.set_threshold(200_000, 20, 20)
    code = 0
    with while_read():
        code = _run(sys.argv[1:])
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    try:
        code = app(arguments, standalone_mode=False)
    except typer.Exit as leaving:
        code = leaving.exit_code
    except typer.Abort:
        code = EXIT_INTERRUPTED
    except SystemExit:  # Typer and Rich leave so where nobody reads the help any more
        code = 0
    except typer.TyperException as error:
        # "Value error, " is said by Typer's own reader of choices, and tells a person nothing.
        said = error.format_message().replace(": Value error, ", ": ", 1).rstrip(".")
        code = fail_usage(arguments, said)
    return code if isinstance(code, int) else 0
