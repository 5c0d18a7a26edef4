"""Commands that review a change before the merge: plan, check."""

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweepledger import __version__
from sweepledger.cli import response
from sweepledger.cli.envelopes import check_data, plan_data
from sweepledger.cli.options import BaseOption, MonthOption
from sweepledger.cli.response import EXIT_DRIFT, EXIT_PROBLEMS, Format, Response, has_errors
from sweepledger.errors import GeneratorError
from sweepledger.problems import Problem

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sweepledger.commands.plan import Planned


class PlanFormat(StrEnum):
    """Output formats of `sweep plan`; Markdown is for comments on pull requests."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def plan(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Sweeps to plan; default: all that a merge would change."),
    ] = None,
    base: BaseOption = None,
    month: MonthOption = None,
    form: Annotated[
        PlanFormat, typer.Option("--format", help="Print text, Markdown, or one JSON object.")
    ] = PlanFormat.TEXT,
) -> None:
    """Review sweeps before the merge.

    It shows trials, coverage, forecast, cost, and changes since the base commit.
    """

    def work() -> Response:
        from sweepledger.commands import plan as command
        from sweepledger.commands.repository.workspace import Workspace

        planned = command.plan(Workspace.find(response.current_folder()), names or (), base=base, month=month)
        review_problems = (problem for review in planned.reviews for problem in review.problems)
        problems = tuple(sorted((*planned.problems, *review_problems)))
        code = EXIT_PROBLEMS * has_errors(problems)
        if form is PlanFormat.JSON:
            return Response(plan_data(planned), problems=problems, exit_code=code)
        return Response({}, _plan_renderables(planned, form), problems, code)

    response.respond("plan", Format.JSON if form is PlanFormat.JSON else Format.TEXT, work)


def _plan_renderables(planned: "Planned", form: PlanFormat) -> "tuple[RenderableType, ...]":
    if form is PlanFormat.MARKDOWN:
        from rich.text import Text

        from sweepledger.cli.text import plan_markdown

        return (Text(plan_markdown.plan_comment(planned)),)
    from sweepledger.cli.text import plan

    return plan.plan_text(planned)


PATCH_FILE = "mend.patch"
STATUS_BY_EXIT_CODE = {0: "ok", EXIT_PROBLEMS: "problems", EXIT_DRIFT: "problems"}


class CheckFormat(StrEnum):
    """Output formats of `sweep check`; GitHub shows annotations next to the lines of a pull request."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def check(
    base: BaseOption = None,
    month: MonthOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Build every active overlay, changed or not.")
    ] = False,
    hook: Annotated[
        bool,
        typer.Option(
            "--hook",
            help="On a git server, as its pre-receive hook: check what the push would bring to the branch.",
        ),
    ] = False,
    form: Annotated[
        CheckFormat,
        typer.Option("--format", help="Print text, one JSON object, or annotations for GitHub."),
    ] = CheckFormat.TEXT,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="DIR",
            help="Also write check.json, check.sarif, code-quality.json (for GitLab) and, if a patch can fix "
            f"the change, {PATCH_FILE} to this folder.",
        ),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option("--summary", metavar="FILE", help="Also append the result to this file, as Markdown."),
    ] = None,
) -> None:
    """Check a change before the merge, as CI does.

    It checks specs, drift, merged batches, base files, builds and manifests.
    """

    def work() -> Response:
        try:
            if hook:
                checked, patch = _run_hook(month), b""
            else:
                checked, patch = _run_check(base, month, everything=everything, with_patch=report is not None)
        except GeneratorError as error:
            failed = Response({}, problems=response.error_problems(error), exit_code=error.exit_code)
            _write_reports(failed, report, summary, b"")
            if form is CheckFormat.GITHUB:
                _print_annotations(failed.problems)
            raise
        _write_reports(checked, report, summary, patch)
        if form is CheckFormat.GITHUB:
            _print_annotations(checked.problems)
        return checked

    response.respond("check", Format.JSON if form is CheckFormat.JSON else Format.TEXT, work)


def _run_check(
    base: str | None, month: str | None, *, everything: bool, with_patch: bool
) -> tuple[Response, bytes]:
    from sweepledger.cli.text import check
    from sweepledger.commands import check as command
    from sweepledger.commands.checks import fix_patch
    from sweepledger.commands.repository.workspace import Workspace

    workspace = Workspace.find(response.current_folder())
    report = command.check(workspace, base=base, everything=everything, month=month)
    patch = fix_patch.build_fix(workspace, report.problems, base=base) if with_patch else b""
    code = EXIT_DRIFT * has_errors(report.problems)
    return Response(check_data(report), check.check_text(report), report.problems, code), patch


def _run_hook(month: str | None) -> Response:
    """Check each pushed ref that is the branch; all others are accepted."""
    from sweepledger.cli.text import check
    from sweepledger.commands import check as command
    from sweepledger.commands.repository import pushed

    environment = dict(os.environ)  # git commands forget what names the pushed objects
    os.environ.pop(
        "GIT_QUARANTINE_PATH", None
    )  # with it, git changes no ref, not even in the temporary work tree
    server = response.current_folder()
    by_collector = pushed.is_collector(environment)
    for ref in pushed.read_refs(sys.stdin.read()):
        with pushed.checked_out(server, environment, ref) as workspace:
            if workspace is None:
                continue
            report = command.check(
                workspace,
                base=ref.old,
                everything=ref.old is None,
                month=month,
                by_collector=by_collector,
            )
            code = EXIT_DRIFT * has_errors(report.problems)
            return Response(check_data(report), check.check_text(report), report.problems, code)
    return Response({}, ())


def _print_annotations(problems: tuple[Problem, ...]) -> None:
    from sweepledger.cli.text.check import github_annotations

    for line in github_annotations(problems):
        print(line)


def _write_reports(checked: Response, report: Path | None, summary: Path | None, patch: bytes) -> None:
    """Write the files that --report and --summary request. Raises StorageError."""
    from sweepledger import storage
    from sweepledger.cli.text import check
    from sweepledger.formats.problem_reports import code_quality, sarif

    if report is not None:
        status = STATUS_BY_EXIT_CODE.get(checked.exit_code, "error")
        document = sarif(checked.problems, version=__version__)
        contents = {
            "check.json": response.format_envelope("check", status, checked.data, checked.problems).encode(),
            "check.sarif": json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "replace"),
            "code-quality.json": json.dumps(
                code_quality(checked.problems), indent=1, ensure_ascii=False
            ).encode("utf-8", "replace"),
            **({PATCH_FILE: patch} if patch else {}),
        }
        for name, content in contents.items():
            storage.write_file(storage.output_path(report / name), content.rstrip(b"\n") + b"\n")
    if summary is not None:
        text = check.check_markdown(checked.problems, patch=PATCH_FILE if patch else None)
        storage.append_file(storage.output_path(summary), text.encode("utf-8", "replace"))
