"""The command `promote`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweepledger.cli import completion, response
from sweepledger.cli.options import FormatOption, StateOption
from sweepledger.cli.response import EXIT_DRIFT, SHORT_COMMIT, Format, Response, escape_control_characters

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sweepledger.commands.promote import PromotedModel, Promotion
    from sweepledger.commands.repository.workspace import Workspace

MODEL_FORMS = ("mlflow", "oci")


def promote(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Sweep, by name.", autocompletion=completion.sweeps),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FILE|DIR", help="Configuration file in git; with --as, a new folder."),
    ] = None,
    trial: Annotated[
        str | None,
        typer.Option("--trial", metavar="ID", help="Promote this trial; default: the sweep's best."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="PARAMETER=KEY",
            help="Key of the file for a parameter, with dots; can be repeated.",
        ),
    ] = None,
    branch: Annotated[
        str, typer.Option("--branch", help="New branch; default: promote/SWEEP-TRIAL.", show_default=False)
    ] = "",
    tag: Annotated[
        str, typer.Option("--tag", help="Also create this tag, signed if git signs.", show_default=False)
    ] = "",
    push: Annotated[bool, typer.Option("--push/--no-push", help="Push the branch and the tag.")] = True,
    form_of_model: Annotated[
        str | None,
        typer.Option("--as", metavar="|".join(MODEL_FORMS), help="Write the trial's artifacts as a model."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Compare all promoted files of HEAD with their trials; exits with 5 if one differs.",
        ),
    ] = False,
    state: StateOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Put the values of a sweep's best trial into a configuration file, as a branch for a pull request.

    The results are verified first. The file may be YAML, JSON or TOML; only the values of keys that match parameters
    change. FILE.intoto.json beside it says which trial, code, data and image they come from.

    With --as, the trial's artifacts become an MLflow model or an OCI image layout with attested provenance.
    """

    def work() -> Response:
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.errors import UsageError

        workspace = Workspace.find(response.current_folder())
        if check:
            return _check_response(workspace)
        if name is None or to is None:
            raise UsageError(
                "promote needs the name of a sweep and --to", hint="`sweep promote NAME --to config.yaml`"
            )
        if form_of_model is not None:
            return _model_response(workspace, name, Path(to), (form_of_model, trial, state))
        return _values_response(workspace, name, to, trial, key or (), (branch, tag, push))

    response.respond("promote", form, work)


def _values_response(
    workspace: "Workspace",
    name: str,
    file: str,
    trial: str | None,
    keys: Sequence[str],
    publication: tuple[str, str, bool],
) -> Response:
    from sweepledger.commands import promote as command

    promotion = command.promote_values(
        workspace,
        name,
        file,
        trial=trial,
        keys=_keys(keys),
        publication=command.Publication(*publication),
    )
    return Response(promotion.as_data(), tuple(_promotion_lines(promotion)))


def _keys(texts: Sequence[str]) -> Mapping[str, str]:
    """Return the keys of parameters. Raises UsageError."""
    from sweepledger.errors import UsageError

    pairs = [text.partition("=") for text in texts]
    for text, (parameter, _, key) in zip(texts, pairs, strict=True):
        if not parameter or not key:
            raise UsageError(
                f"--key must be PARAMETER=KEY, got {text!r}", hint="--key learning_rate=train.lr"
            )
    return {parameter: key for parameter, _, key in pairs}


def _model_response(
    workspace: "Workspace", name: str, folder: Path, options: tuple[str, str | None, Path | None]
) -> Response:
    from sweepledger.commands import promote as command
    from sweepledger.errors import UsageError
    from sweepledger.repo.state import state_folder

    form, trial, state = options
    if form not in set(command.ModelForm):
        raise UsageError(f"--as must be one of {', '.join(command.ModelForm)}, got {form!r}")
    place = state_folder(workspace.repository, state)
    model = command.promote_model(
        workspace, name, folder.absolute(), form=command.ModelForm(form), trial=trial, state=place
    )
    return Response(model.as_data(), tuple(_model_lines(model)))


def _check_response(workspace: "Workspace") -> Response:
    from rich.text import Text

    from sweepledger.commands import promote as command

    promoted = command.check_promotions(workspace)
    data = [
        {"file": one.file, "sweep": one.sweep, "trial": one.trial, "differences": list(one.differences)}
        for one in promoted
    ]
    lines = [
        Text(
            escape_control_characters(
                f"{one.file}: {one.sweep}/{one.trial}: {'; '.join(one.differences) or 'as promoted'}"
            )
        )
        for one in promoted
    ]
    differs = any(one.differences for one in promoted)
    return Response(
        {"promoted": data},
        tuple(lines or [Text("nothing is promoted")]),
        exit_code=EXIT_DRIFT if differs else 0,
    )


def _promotion_lines(promotion: "Promotion") -> "Iterator[RenderableType]":
    from rich.text import Text

    yield from _result_lines(promotion)
    for one in promotion.set:
        yield Text(
            escape_control_characters(f"  {promotion.file}: {one.path}: {one.before!r} → {one.after!r}")
        )
    if promotion.missing:
        names = ", ".join(promotion.missing)
        yield Text(escape_control_characters(f"no key of {promotion.file} for: {names}"), "yellow")
    where = "pushed" if promotion.pushed else "local"
    yield Text(
        f"{where} branch {promotion.branch} at {promotion.commit[:SHORT_COMMIT]}: open a pull request from it"
    )
    if promotion.tag:
        yield Text(f"tag {promotion.tag}, {'signed' if promotion.is_signed else 'not signed'}")


def _model_lines(model: "PromotedModel") -> "Iterator[RenderableType]":
    from rich.text import Text

    yield from _result_lines(model)
    yield Text(f"wrote {model.folder}: {model.files} files")


def _result_lines(promoted: "Promotion | PromotedModel") -> "Iterator[RenderableType]":
    from rich.text import Text

    trial = promoted.trial
    interval = ""
    if trial.interval is not None:
        interval = f" [{trial.interval[0]:.4g}, {trial.interval[1]:.4g}]"
    result = f"{trial.name}: {trial.metric.name} {trial.value:.6g}{interval} ({trial.verdict})"
    yield Text(escape_control_characters(result), "bold")
    yield from (Text(escape_control_characters(f"warning: {one}"), "yellow") for one in promoted.warnings)
