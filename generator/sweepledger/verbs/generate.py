"""Write the next batch of each sweep: trials that no batch has.

If you name no sweep, those of valid specs are written, and the problems of the others are reported.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from sweepledger.cli.options import BaseOption, SweepsArgument
from sweepledger.cli.response import EXIT_DRIFT, EXIT_PROBLEMS, Response, current_folder
from sweepledger.cli.text.generation import generated_data, generated_text
from sweepledger.cli.text.values import count_text
from sweepledger.commands import generate as batches
from sweepledger.commands.generate import Generation
from sweepledger.commands.repository.workspace import NO_SPECS, Workspace
from sweepledger.errors import UsageError
from sweepledger.problems import Problem

FEW = 5
"""So many unchanged sweeps are named."""


def generate(
    names: SweepsArgument = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 5 if a batch is missing.")
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 5 if anything was written, for hooks.")
    ] = False,
    update: Annotated[
        bool,
        typer.Option(
            "--update", help="Request all trials of the named sweeps again if code, image or data changed."
        ),
    ] = False,
    push: Annotated[
        bool,
        typer.Option("--push", help="Commit on the branch; requires `generate: on-merge` in the settings."),
    ] = False,
    base: BaseOption = None,
) -> Response:
    if push and (check_only or exit_code or update or base is not None):
        raise UsageError("--push cannot be combined with --check, --exit-code, --update or --base")
    if update and not names:
        raise UsageError("--update needs the names of sweeps: all of their trials run again")
    workspace = Workspace.find(current_folder())
    if push:
        made, commit = batches.push_batches(workspace, names or ())
        is_complete = not made.problems and not made.failures
        nothing = "nothing to commit" + (": every trial is in a batch" if is_complete else "")
        last_line = f"committed as {commit}" if commit else nothing
        return _response(made, {"commit": commit}, (last_line,))
    if names:
        made = Generation(batches.generate(workspace, names, check=check_only, base=base, update=update))
    else:
        made = batches.generate_changed(workspace, check=check_only, base=base)
    has_drift = (check_only or exit_code) and any(item.is_pending for item in made.generated)
    unchanged = sorted(path.stem for path in made.settled)
    lines = [] if workspace.spec_paths() else [NO_SPECS]
    if unchanged:
        listed = f" ({', '.join(unchanged)})" if len(unchanged) <= FEW else ""
        lines.insert(0, f"{count_text(len(unchanged), 'sweep')} unchanged{listed}: nothing to write")
    unread = () if names else workspace.unread_specs()
    return _response(
        made, {"unchanged": unchanged}, lines, unread, check=check_only, code=EXIT_DRIFT * has_drift
    )


def _response(
    made: Generation,
    data: Mapping[str, Any],
    lines: Iterable[str],
    unread: tuple[Problem, ...] = (),
    *,
    check: bool = False,
    code: int = 0,
) -> Response:
    """Return the batches that were made, and the problems of the specs that have none; these decide the exit code."""
    text = (*generated_text(made.generated, check=check), *map(Text, lines))
    warnings = sorted(warning for generated in made.generated for warning in generated.warnings)
    if made.problems:
        code = EXIT_PROBLEMS
    elif made.failures:
        code = min(failure.exit_code for failure in made.failures)
    problems = (*made.problems, *warnings, *unread)
    return Response({**generated_data(made.generated), **data}, text, problems, code, made.failures)
