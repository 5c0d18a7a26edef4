"""Options and arguments that several commands share."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweepledger.cli import completion
from sweepledger.cli.response import Format

if TYPE_CHECKING:
    from sweepledger.commands.collection.record_store import ReaderPodOptions
    from sweepledger.commands.repository.workspace import Workspace

FormatOption = Annotated[Format, typer.Option("--format", help="Print text, or one JSON object.")]

SweepArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the sweep.", autocompletion=completion.sweeps)
]
SweepOrSpecArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name or spec of the sweep.", autocompletion=completion.sweeps)
]
OptionalSweepArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="Name or spec of one sweep; default: all sweeps.",
        autocompletion=completion.sweeps,
    ),
]
SweepsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...",
        help="Names of sweeps; default: all of sweeps/.",
        autocompletion=completion.sweeps,
    ),
]
TrialArgument = Annotated[
    str,
    typer.Argument(
        metavar="TRIAL",
        help="Trial id or the beginning of one, or SWEEP/TRIAL.",
        autocompletion=completion.trials,
    ),
]
BatchOption = Annotated[
    str | None,
    typer.Option(
        "--batch",
        metavar="BATCH",
        help="Select this batch only; default: every batch to which the command applies.",
        autocompletion=completion.batches,
    ),
]

BaseOption = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="REV",
        help="Compare with this commit, such as upstream/main; default: the remote's branch, else HEAD.",
    ),
]
MonthOption = Annotated[
    str | None,
    typer.Option(
        "--month",
        metavar="YYYY-MM",
        help="Use the team budgets of this month; default: the month of the base commit.",
    ),
]
RemoteOption = Annotated[
    str | None,
    typer.Option(
        "--remote",
        metavar="NAME",
        help="Use this remote; default: git's `sweepledger.remote`, else the one with the newest branch.",
    ),
]
BranchOption = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="Use this branch; default: `branch` in the settings."),
]
PushOption = Annotated[
    bool, typer.Option("--push", help="Commit on the remote's branch instead of the local one.")
]
StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Use this state folder of `sweep cluster local`; default: .sweepledger.",
    ),
]

InOption = Annotated[
    str | None,
    typer.Option("--in", metavar="CLUSTER", help="Cluster to look at, if the settings name several."),
]
ContextOption = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="NAME", help="Use this context of the kubeconfig; default: the current one."
    ),
]
ByPodOption = Annotated[
    bool, typer.Option("--by-pod", help="Read the cluster's volume through a short-lived pod.")
]
ImageOption = Annotated[
    str | None,
    typer.Option(
        "--image",
        metavar="NAME",
        help="Run the pod from this image of the settings, which needs sh and tar; default: defaults.image.",
    ),
]
PatienceOption = Annotated[
    float, typer.Option("--patience", min=1, metavar="SECONDS", help="Wait this long for the pod to run.")
]


OutputOption = Annotated[
    Path | None, typer.Option("--output", metavar="PATH", help="Write to this file, which must not exist.")
]

WithoutGpuOption = Annotated[
    bool,
    typer.Option(
        "--without-gpu", help="Run trials without the GPUs that they require; their records say so."
    ),
]


def reader_pod(
    workspace: "Workspace",
    context: str | None,
    image: str | None,
    patience: float,
    *,
    claim: str | None = None,
) -> "ReaderPodOptions":
    """Return the description of a pod that reads a volume: by default, the results volume."""
    from sweepledger.commands.collection.record_store import ReaderPodOptions
    from sweepledger.engine.cluster.kubectl import Kubectl

    return ReaderPodOptions(workspace, Kubectl(context), image, patience, claim)


def format_argument(formats: Collection[str]) -> Any:
    """Return the argument FORMAT, which is one of these names."""

    def checked(text: str) -> str:
        if text not in formats:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, formats))}")
        return text

    return typer.Argument(
        metavar="FORMAT",
        help=f"One of {', '.join(formats)}.",
        callback=checked,
        autocompletion=lambda: list(formats),
    )


def flag(name: str, text: str) -> Any:
    """Return an option that is false unless it is given."""
    return typer.Option(False, name, help=text)


def option(usage: str, text: str, *, default: Any = None, **more: Any) -> Any:
    """Return an option that takes a value: `--jobs -j N` is its usage, and `more` has bounds or completion."""
    names = [word for word in usage.split() if word.startswith("-")]
    metavar = usage.split()[len(names) :]
    return typer.Option(default, *names, metavar=" ".join(metavar) or None, help=text, **more)


def argument(metavar: str, text: str, *, default: Any = None, **more: Any) -> Any:
    """Return an argument, which must be given unless its metavar has brackets."""
    required = default is None and not metavar.startswith("[")
    return typer.Argument(... if required else default, metavar=metavar, help=text, **more)
