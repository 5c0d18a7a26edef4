"""The options of whoever reads a volume that only pods can read."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from generator.commands.reading_pod import ReadingPod
    from generator.commands.workspace import Workspace

ByPodOption = Annotated[
    bool, typer.Option("--by-pod", help="Read the cluster's volume, through a short-lived pod.")
]
ImageOption = Annotated[
    str | None,
    typer.Option("--image", metavar="NAME", help="The pod's image, with sh and tar; default: the settings'."),
]
PatienceOption = Annotated[
    int, typer.Option("--patience", min=1, metavar="SECONDS", help="How long to wait for the pod to run.")
]


def reading_pod(
    workspace: "Workspace", context: str | None, image: str | None, patience: int, *, claim: str | None = None
) -> "ReadingPod":
    """Say how to start the pod."""
    from generator.commands.reading_pod import ReadingPod
    from generator.engine.cluster.kubectl import Kubectl

    return ReadingPod(workspace, Kubectl(context), image, patience, claim)
