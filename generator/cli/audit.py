"""What an auditor asks: verify, compare, reproduce, fetch."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generator.cli import answer, completing
from generator.cli.answer import EXIT_DRIFT, EXIT_PROBLEMS, Answer, Format, FormatOption
from generator.cli.by_pod import ByPodOption, ImageOption, PatienceOption, reading_pod
from generator.cli.panels import READ
from generator.cli.read import OptionalName, Trial
from generator.cli.run import ContextOption, StateOption

if TYPE_CHECKING:
    from generator.commands.verify import Verdict

Side = Annotated[
    str,
    typer.Argument(
        metavar="NAME[@REV]",
        help="A sweep, as it is recorded here or at a commit.",
        autocompletion=completing.sweeps,
    ),
]

AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="REV", help="A commit; default: HEAD, and what lies in the work tree."),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="REV",
        help="Only what changed after a commit, and that no results commit touched anything else.",
    ),
]
SignersOption = Annotated[
    Path | None,
    typer.Option(
        "--signers",
        metavar="FILE",
        help="Allowed signers that you know from elsewhere; default: the settings' at the commit.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands that hold results against what they came from."""
    app.command("verify", rich_help_panel=READ)(verify)
    app.command("compare", rich_help_panel=READ)(compare)
    app.command("reproduce", rich_help_panel=READ)(reproduce)
    app.command("fetch", rich_help_panel=READ)(fetch)


def verify(
    name: OptionalName = None,
    at: AtOption = None,
    since: SinceOption = None,
    signers: SignersOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Work everything below results/ out again from records and locks, offline, and check the signatures.

    Says of each sweep: verified, differs (file, row and column are named) or unsigned. Exits 5 where
    something differs, or where signers are listed and a commit that touched results is not signed by one.
    """

    def work() -> Answer:
        from generator.cli import audit_text

        found = _verdict(name, at, since, signers)
        data = {
            "commit": found.commit,
            "signers": found.signers,
            "sweeps": [one.as_data() for one in found.sweeps],
            "stray": [one.as_data() for one in found.stray],
        }
        return Answer(data, audit_text.verified(found), exit_code=0 if found.is_good else EXIT_DRIFT)

    answer.answer("verify", form, work)


def _verdict(name: str | None, at: str | None, since: str | None, signers: Path | None) -> "Verdict":
    from generator.commands import verify as command
    from generator.commands.workspace import Workspace
    from generator.errors import UsageError

    workspace = Workspace.find(answer.here())
    if since is None:
        return command.verify(workspace, name, revision=at, signers=signers)
    if name is not None:
        raise UsageError("--since looks at every sweep that changed", hint="leave out the name")
    return command.verify_since(workspace, since, revision=at, signers=signers)


def reproduce(
    trial: Trial,
    run: Annotated[
        bool, typer.Option("--run", help="Run it here, with its locked code, and compare every metric.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Say what exactly a trial was: code, image, data, values, seed, and the command to paste.

    With --run it is run again as `sweep local` would, as a process of yours, and nothing is recorded. Exits 1
    where it ends otherwise than recorded, or where any metric differs by as little as its last bit.
    """

    def work() -> Answer:
        from generator.cli import audit_text
        from generator.commands import reproduce as command
        from generator.commands.workspace import Workspace

        workspace = Workspace.find(answer.here())
        if not run:
            told = command.recipe(workspace, trial)
            return Answer(told.as_data(), audit_text.recipe(told))
        found = command.reproduce(workspace, trial)
        code = 0 if found.is_equal else EXIT_PROBLEMS
        return Answer(found.as_data(), audit_text.reproduced(found), exit_code=code)

    answer.answer("reproduce", form, work)


def compare(a: Side, b: Side, form: FormatOption = Format.TEXT) -> None:
    """Compare two recorded sweeps, or one at two commits, on the values that both have tried.

    Nothing is ranked where metric, goal or data differ: both numbers are shown, and why.
    """

    def work() -> Answer:
        from generator.cli import audit_text
        from generator.commands import compare as command
        from generator.commands.workspace import Workspace

        found = command.compare(Workspace.find(answer.here()), a, b)
        return Answer(found.as_data(), audit_text.compared(found))

    answer.answer("compare", form, work)


def fetch(
    trial: Trial,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Where to; default: artifacts/TRIAL.")
    ] = None,
    state: StateOption = None,
    by_pod: ByPodOption = False,
    context: ContextOption = None,
    image: ImageOption = None,
    patience: PatienceOption = 300,
    form: FormatOption = Format.TEXT,
) -> None:
    """Bring the files that a trial kept, each held against the checksum in its record.

    They come from the state folder of `sweep local`, or from a mounted volume that is named so; with --by-pod
    from the cluster's volume, through a short-lived pod.
    """

    def work() -> Answer:
        from generator.cli import audit_text
        from generator.commands import fetch as command
        from generator.commands import ledger
        from generator.commands.workspace import Workspace

        workspace = Workspace.find(answer.here())
        claim = workspace.settings.results.artifacts
        pod = reading_pod(workspace, context, image, patience, claim=claim) if by_pod else None
        folder = to.absolute() if to else None
        place = ledger.state_folder(workspace, state)
        found = command.fetch(workspace, trial, into=folder, state=place, pod=pod)
        return Answer(found.as_data(), audit_text.fetched(found))

    answer.answer("fetch", form, work)
