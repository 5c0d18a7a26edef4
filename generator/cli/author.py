"""What an author does before the merge: new, validate, try, generate, update, check, schema."""

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generator.cli import answer, completing
from generator.cli.answer import EXIT_DRIFT, EXIT_PROBLEMS, Answer, BaseOption, Format, FormatOption
from generator.cli.panels import AUTHOR
from generator.problems import Problem

if TYPE_CHECKING:
    from generator.commands.generate import Generated
    from generator.commands.workspace import Workspace

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...", help="Sweeps; all of sweeps/ if none.", autocompletion=completing.sweeps
    ),
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The sweep's name.", autocompletion=completing.sweeps)
]


class File(StrEnum):
    """What people write."""

    SWEEP = "sweep"
    SETTINGS = "settings"


def register(app: typer.Typer) -> None:
    """Add the author's commands."""
    app.command("new", rich_help_panel=AUTHOR)(new)
    app.command("validate", rich_help_panel=AUTHOR)(validate)
    app.command("try", rich_help_panel=AUTHOR)(try_)
    app.command("generate", rich_help_panel=AUTHOR)(generate)
    app.command("update", rich_help_panel=AUTHOR)(update)
    app.command("schema", rich_help_panel=AUTHOR)(schema)


def new(name: Name, form: FormatOption = Format.TEXT) -> None:
    """Write a commented starter spec to sweeps/NAME.yaml."""

    def work() -> Answer:
        from generator.commands import new as command
        from generator.commands.workspace import Workspace

        workspace = Workspace.find(answer.here())
        path = workspace.shown(command.new(workspace, name))
        return Answer({"path": path}, (f"wrote {path}\nnext: edit it, then `sweep try {name}`",))

    answer.answer("new", form, work)


def validate(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help="Sweeps or files; all of sweeps/ if none.")
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Read specs and tell every problem, with its place."""

    def work() -> Answer:
        from generator.cli import sizes
        from generator.commands import validate as command
        from generator.commands.workspace import Workspace

        found = command.validate(Workspace.find(answer.here()), paths or ())
        listed = [
            {"name": sweep.name, "path": sweep.path, **sizes.data(size)} for sweep, size in found.sweeps
        ]
        return Answer(
            {"sweeps": listed},
            tuple(f"{sweep.path}: ok, {sizes.said(size)}" for sweep, size in found.sweeps),
            found.problems,
            EXIT_PROBLEMS * answer.has_errors(found.problems),
        )

    answer.answer("validate", form, work)


def try_(
    name: Name,
    trial: Annotated[
        int, typer.Option("--trial", metavar="N", help="Which trial of `sweep plan`, counted from 0.")
    ] = 0,
    form: FormatOption = Format.TEXT,
) -> None:
    """Run one trial from the work tree, here and now; nothing is committed or recorded."""

    def work() -> Answer:
        from generator.cli import show
        from generator.commands import try_ as command
        from generator.commands.workspace import Workspace

        tried = command.try_(Workspace.find(answer.here()), name, trial, quiet=form is Format.JSON)
        return Answer(tried.as_data(), show.tried(tried), exit_code=0 if tried.is_ok else EXIT_PROBLEMS)

    answer.answer("try", form, work)


def generate(
    names: Names = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 5 if something is missing.")
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit 5 if anything was written: for hooks.")
    ] = False,
    push: Annotated[
        bool,
        typer.Option("--push", help="Commit onto the branch, where the settings say `generate: on-merge`."),
    ] = False,
    base: BaseOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write the next batch of each sweep: the trials that no batch lists yet."""

    def work() -> Answer:
        from generator.cli import show
        from generator.commands import generate as command
        from generator.commands.workspace import Workspace

        if push:
            return _pushed(Workspace.find(answer.here()), names or ())
        found = command.generate(Workspace.find(answer.here()), names or (), check=check_only, base=base)
        drifted = (check_only or exit_code) and any(generated.is_pending for generated in found)
        shown = show.generated(found, check=check_only)
        return Answer(_generated(found), shown, _warnings(found), EXIT_DRIFT * drifted)

    answer.answer("generate", form, work)


def _pushed(workspace: "Workspace", names: "Iterable[str]") -> Answer:
    from generator.cli import show
    from generator.commands import publishing

    found, commit = publishing.push(workspace, names)
    last = f"committed as {commit}" if commit else "nothing to commit: every trial is in a batch"
    data = {**_generated(found), "commit": commit}
    return Answer(data, (*show.generated(found, check=False), last), _warnings(found))


def update(name: Name, base: BaseOption = None, form: FormatOption = Format.TEXT) -> None:
    """Take today's code, image and data into a sweep: where they changed, ask for every trial anew."""

    def work() -> Answer:
        from generator.cli import show
        from generator.commands import update as command
        from generator.commands.workspace import Workspace

        found = command.update(Workspace.find(answer.here()), name, base=base)
        return Answer(_generated([found]), show.generated([found], check=False), _warnings([found]))

    answer.answer("update", form, work)


def _warnings(found: "Iterable[Generated]") -> tuple[Problem, ...]:
    return tuple(sorted(warning for generated in found for warning in generated.warnings))


def _generated(found: "Iterable[Generated]") -> dict[str, Any]:
    return {
        "sweeps": [
            {
                "name": generated.sweep.name,
                "trials": generated.trials,
                "known": generated.known,
                "new": generated.trials - generated.known,
                "batch": generated.batch.name if generated.batch else None,
                "written": bool(generated.batch) and not generated.is_written,
                "removed": [stored.folder for stored in generated.stale],
            }
            for generated in found
        ]
    }


def schema(
    file: Annotated[File, typer.Argument(help="Which files: specs, or sweepledger.yaml.")] = File.SWEEP,
) -> None:
    """Print the JSON Schema that editors complete and explain keys by."""
    from generator.spec.schemas import schema_text

    print(schema_text(file), end="")
