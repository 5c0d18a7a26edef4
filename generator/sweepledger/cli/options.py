"""Options and arguments that several commands share."""

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sweepledger.cli import completion
from sweepledger.cli.response import Format


def flag(name: str, text: str, *, default: Any = False) -> Any:
    """Return an option that is false by default."""
    return typer.Option(default, name, help=text)


def option(usage: str, text: str, *, default: Any = None, **more: Any) -> Any:
    """Return an option that takes a value: `--jobs -j N` is its usage, and `more` has bounds or completion."""
    names = [word for word in usage.split() if word.startswith("-")]
    metavar = usage.split()[len(names) :]
    return typer.Option(default, *names, metavar=" ".join(metavar) or None, help=text, **more)


def argument(metavar: str, text: str, *, default: Any = None, **more: Any) -> Any:
    """Return an argument, which must be given unless its metavar has brackets."""
    required = default is None and not metavar.startswith("[")
    return typer.Argument(... if required else default, metavar=metavar, help=text, **more)


# In an annotation, `...` leaves the default to the verb.
shared_flag, shared, shared_argument = (partial(make, default=...) for make in (flag, option, argument))

FormatOption = Annotated[Format, shared("--format", "Print text, or one JSON object.")]

SweepArgument = Annotated[
    str, shared_argument("NAME", "Name of the sweep.", autocompletion=completion.sweeps)
]
OptionalSweepArgument = Annotated[
    str | None,
    shared_argument(
        "[NAME]", "Name or spec of one sweep; default: all sweeps.", autocompletion=completion.sweeps
    ),
]
BatchOption = Annotated[
    str | None,
    shared(
        "--batch BATCH",
        "Select this batch only; default: every batch to which the command applies.",
        autocompletion=completion.batches,
    ),
]
BaseOption = Annotated[
    str | None,
    shared(
        "--base REV",
        "Compare with this commit, such as upstream/main; default: the remote's branch, else HEAD.",
    ),
]
MonthOption = Annotated[
    str | None,
    shared("--month YYYY-MM", "Use the team budgets of this month; default: the month of the base commit."),
]
RemoteOption = Annotated[
    str | None,
    shared(
        "--remote NAME",
        "Use this remote; default: git's `sweepledger.remote`, else the one with the newest branch.",
    ),
]
BranchOption = Annotated[
    str | None, shared("--branch NAME", "Use this branch; default: `branch` in the settings.")
]
StateOption = Annotated[
    Path | None,
    shared("--state DIR", "Use this state folder of `sweep cluster local`; default: .sweepledger."),
]
InOption = Annotated[str | None, shared("--in CLUSTER", "Cluster to look at, if the settings name several.")]
ContextOption = Annotated[
    str | None,
    shared("--context NAME", "Use this context of the kubeconfig; default: the current one."),
]
ByPodOption = Annotated[bool, shared_flag("--by-pod", "Read the cluster's volume through a short-lived pod.")]
ImageOption = Annotated[
    str | None,
    shared(
        "--image NAME",
        "Run the pod from this image of the settings, which needs sh and tar; default: defaults.image.",
    ),
]
PatienceOption = Annotated[float, shared("--patience SECONDS", "Wait this long for the pod to run.", min=1)]
OutputOption = Annotated[Path | None, shared("--output PATH", "Write to this file, which must not exist.")]
WithoutGpuOption = Annotated[
    bool,
    shared_flag("--without-gpu", "Run trials without the GPUs that they require; their records say so."),
]


def one_of(names: Collection[str]) -> dict[str, Any]:
    """Return settings that restrict an option or argument to these names."""

    def checked(text: str) -> str:
        if text not in names:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, names))}")
        return text

    return {"callback": checked, "autocompletion": lambda: list(names)}


def format_argument(formats: Collection[str]) -> Any:
    """Return the argument FORMAT, which takes one of these names."""
    return argument("FORMAT", f"One of {', '.join(formats)}.", **one_of(formats))
