"""Commands that look into recorded results: verify, compare, show."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweepledger.cli import completion, response
from sweepledger.cli.options import (
    ByPodOption,
    ContextOption,
    FormatOption,
    ImageOption,
    PatienceOption,
    StateOption,
    TrialArgument,
    reader_pod,
)
from sweepledger.cli.response import EXIT_PROBLEMS, Format, Response

if TYPE_CHECKING:
    from sweepledger.commands.repository.workspace import Workspace

SweepAtCommitArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME[@REV|@BATCH]",
        help="Sweep as recorded at HEAD, at a commit, or one of its batches by name or number (NAME@b2).",
        autocompletion=completion.sweeps,
    ),
]


def compare(
    a: SweepAtCommitArgument,
    b: SweepAtCommitArgument,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Say why the best value of B differs: code, data, environment, values, budget or noise.",
        ),
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help="With --explain: write the specs that it proposes to sweeps/.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Compare two recorded sweeps, or two versions of one.

    It shows best, mean of the best five, cost, and best so far. Intervals are a bootstrap over configurations.
    Configurations that both contain are shown side by side. If metric, goal or data differ, the numbers are shown
    without a ranking, with the reason.

    With --explain, each cause of a difference has a test over the recorded trials; all tests together name a cause
    by mistake in 5 % of the cases. Where the trials cannot separate causes, it proposes the smallest sweeps that
    would, as specs.
    """

    def work() -> Response:
        from sweepledger.cli.text import verification
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.errors import UsageError

        workspace = Workspace.find(response.current_folder())
        if explain:
            from sweepledger.commands.reports import explain as explaining

            explained = explaining.explain_sweeps(workspace, a, b)
            if write:
                explaining.write_proposals(workspace, explained.proposals)
            return Response(
                explained.as_data(), tuple(verification.explanation_text(explained, written=write))
            )
        if write:
            raise UsageError("--write needs --explain, which proposes specs")
        from sweepledger.commands.reports import compare as comparing

        comparison = comparing.compare(workspace, a, b)
        return Response(comparison.as_data(), tuple(verification.comparison_text(comparison)))

    response.respond("compare", form, work)


def show(
    trial: TrialArgument,
    reproduce: Annotated[
        bool,
        typer.Option(
            "--reproduce",
            help="Show the code, image, data, values and seed, and the commands that run it again.",
        ),
    ] = False,
    run: Annotated[
        bool,
        typer.Option(
            "--run", help="With --reproduce: run it here with its locked code, and compare every metric."
        ),
    ] = False,
    fetch: Annotated[
        Path | None,
        typer.Option(
            "--fetch",
            metavar="DIR",
            help="Copy its artifacts to this folder, and verify the checksums of the record.",
        ),
    ] = None,
    state: StateOption = None,
    by_pod: ByPodOption = False,
    context: ContextOption = None,
    image: ImageOption = None,
    patience: PatienceOption = 300,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show one trial: its values, result, provenance and commits.

    With --reproduce --run, the trial runs as a local process, like under `sweep cluster local`, and nothing is
    recorded. Exits with 1 if its status or any metric differs from the record, even in the last bit.

    With --fetch, artifacts are read from the state folder of `sweep cluster local`, or a volume mounted there; with
    --by-pod, from the cluster's volume through a short-lived pod.
    """

    def work() -> Response:
        from sweepledger.cli.text import results, verification
        from sweepledger.commands.reports import show as command
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.errors import UsageError

        if (run and not reproduce) or (by_pod and fetch is None):
            raise UsageError(
                "--run needs --reproduce" if run and not reproduce else "--by-pod needs --fetch DIR"
            )
        if reproduce and fetch is not None:
            raise UsageError("--fetch cannot be combined with --reproduce")
        workspace = Workspace.find(response.current_folder())
        if reproduce:
            return _reproduced(workspace, trial, run=run)
        if fetch is None:
            details = command.show(workspace, trial)
            return Response(details.as_data(), results.trial_text(details))
        from sweepledger.commands.reports import outputs
        from sweepledger.repo.state import state_folder

        claim = workspace.settings.results.artifacts
        pod = reader_pod(workspace, context, image, patience, claim=claim) if by_pod else None
        folder = state_folder(workspace.repository, state)
        artifacts = outputs.fetch(workspace, trial, into=fetch.absolute(), state=folder, pod=pod)
        return Response(artifacts.as_data(), verification.fetched_text(artifacts))

    response.respond("show", form, work)


def _reproduced(workspace: "Workspace", trial: str, *, run: bool) -> Response:
    from sweepledger.cli.text import verification
    from sweepledger.commands import reproduce as command

    if not run:
        recipe = command.recipe(workspace, trial)
        return Response(recipe.as_data(), verification.recipe_text(recipe))
    reproduction = command.reproduce(workspace, trial)
    code = 0 if reproduction.is_equal else EXIT_PROBLEMS
    return Response(
        reproduction.as_data(), tuple(verification.reproduction_text(reproduction)), exit_code=code
    )
