"""Commands that check recorded results: verify, compare, explain, reproduce, fetch."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweepledger.cli import completion, response
from sweepledger.cli.options import (
    ByPodOption,
    ContextOption,
    FormatOption,
    ImageOption,
    OptionalSweepArgument,
    PatienceOption,
    StateOption,
    TrialArgument,
    reader_pod,
)
from sweepledger.cli.response import EXIT_DRIFT, EXIT_PROBLEMS, Format, Response

if TYPE_CHECKING:
    from sweepledger.commands.verify import Verification

SweepAtCommitArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME[@REV|@BATCH]",
        help="Sweep as recorded at HEAD, at a commit, or one of its batches by name or number (NAME@b2).",
        autocompletion=completion.sweeps,
    ),
]

AtOption = Annotated[
    str | None,
    typer.Option(
        "--at", metavar="REV", help="Verify the results at this commit; default: HEAD and the work tree."
    ),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="REV",
        help="Verify only what changed after this commit, and that results commits changed nothing else.",
    ),
]
SignersOption = Annotated[
    Path | None,
    typer.Option(
        "--signers",
        metavar="FILE",
        help="Check signatures against this file of allowed signers; default: `signers` at the commit.",
    ),
]


def verify(
    name: OptionalSweepArgument = None,
    at: AtOption = None,
    since: SinceOption = None,
    signers: SignersOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Recompute results from records, and check the signatures.

    It reads records and locks, offline, and compares what follows from them with what is committed. Prints for each
    sweep: verified, differs (with file, row and column) or unsigned. Exits with 5 if something differs, or if signers
    are listed and a commit that changed results has no valid signature.
    """

    def work() -> Response:
        from sweepledger.cli.text import verification

        verdict = _run_verify(name, at, since, signers)
        data = {
            "commit": verdict.commit,
            "signers": verdict.signers,
            "sweeps": [sweep.as_data() for sweep in verdict.sweeps],
            "stray": list(map(asdict, verdict.stray)),
        }
        code = 0 if verdict.is_good else EXIT_DRIFT
        return Response(data, verification.verification_text(verdict), exit_code=code)

    response.respond("verify", form, work)


def _run_verify(name: str | None, at: str | None, since: str | None, signers: Path | None) -> "Verification":
    from sweepledger.commands import verify as command
    from sweepledger.commands.repository.workspace import Workspace
    from sweepledger.errors import UsageError

    workspace = Workspace.find(response.current_folder())
    if since is None:
        return command.verify(workspace, name, revision=at, signers=signers)
    if name is not None:
        raise UsageError("--since verifies every sweep that changed", hint="omit the name")
    return command.verify_since(workspace, since, revision=at, signers=signers)


def reproduce(
    trial: TrialArgument,
    run: Annotated[
        bool,
        typer.Option(
            "--run", help="Run the trial on this machine with its locked code, and compare every metric."
        ),
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show the code, image, data, values and seed of a trial, and the commands that run it again.

    With --run, the trial runs as a local process, like under `sweep cluster local`, and nothing is recorded. Exits
    with 1 if its status or any metric differs from the record, even in the last bit.
    """

    def work() -> Response:
        from sweepledger.cli.text import verification
        from sweepledger.commands import reproduce as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        if not run:
            recipe = command.recipe(workspace, trial)
            return Response(recipe.as_data(), verification.recipe_text(recipe))
        reproduction = command.reproduce(workspace, trial)
        code = 0 if reproduction.is_equal else EXIT_PROBLEMS
        return Response(
            reproduction.as_data(), tuple(verification.reproduction_text(reproduction)), exit_code=code
        )

    response.respond("reproduce", form, work)


def compare(a: SweepAtCommitArgument, b: SweepAtCommitArgument, form: FormatOption = Format.TEXT) -> None:
    """Compare two recorded sweeps, or two versions of one.

    It shows best, mean of the best five, cost, and best so far. Intervals are a bootstrap over configurations.
    Configurations that both contain are shown side by side. If metric, goal or data differ, the numbers are shown
    without a ranking, with the reason.
    """

    def work() -> Response:
        from sweepledger.cli.text import verification
        from sweepledger.commands.reports import compare as command
        from sweepledger.commands.repository.workspace import Workspace

        comparison = command.compare(Workspace.find(response.current_folder()), a, b)
        return Response(comparison.as_data(), tuple(verification.comparison_text(comparison)))

    response.respond("compare", form, work)


def explain(
    a: SweepAtCommitArgument,
    b: SweepAtCommitArgument,
    write: Annotated[
        bool, typer.Option("--write", help="Write the specs that it proposes to sweeps/.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Say why the best value of B differs from that of A: code, data, environment, values, budget, or seed noise.

    Each cause has a test over the recorded trials; all tests together name a cause by mistake in 5 % of the cases.
    Where the trials cannot separate causes, it proposes the smallest sweeps that would, as specs.
    """

    def work() -> Response:
        from sweepledger.cli.text import verification
        from sweepledger.commands.reports import explain as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        explained = command.explain_sweeps(workspace, a, b)
        if write:
            command.write_proposals(workspace, explained.proposals)
        return Response(explained.as_data(), tuple(verification.explanation_text(explained, written=write)))

    response.respond("explain", form, work)


def fetch(
    trial: TrialArgument,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="Copy the files to this folder; default: artifacts/TRIAL."),
    ] = None,
    state: StateOption = None,
    by_pod: ByPodOption = False,
    context: ContextOption = None,
    image: ImageOption = None,
    patience: PatienceOption = 300,
    form: FormatOption = Format.TEXT,
) -> None:
    """Copy a trial's artifacts, and verify the checksums in its record.

    Artifacts are read from the state folder of `sweep cluster local`, or a volume mounted there; with --by-pod, from
    the cluster's volume through a short-lived pod.
    """

    def work() -> Response:
        from sweepledger.cli.text import verification
        from sweepledger.commands.reports import outputs as command
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.repo.state import state_folder

        workspace = Workspace.find(response.current_folder())
        claim = workspace.settings.results.artifacts
        pod = reader_pod(workspace, context, image, patience, claim=claim) if by_pod else None
        target = to.absolute() if to else None
        folder = state_folder(workspace.repository, state)
        artifacts = command.fetch(workspace, trial, into=target, state=folder, pod=pod)
        return Response(artifacts.as_data(), verification.fetched_text(artifacts))

    response.respond("fetch", form, work)
