"""Check a change before the merge, as CI does.

It checks specs, drift, merged batches, base files, builds and manifests.
"""

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sweepledger import __version__, storage
from sweepledger.cli import response
from sweepledger.cli.options import BaseOption, MonthOption
from sweepledger.cli.response import EXIT_DRIFT, EXIT_PROBLEMS, Format, Response, has_errors
from sweepledger.cli.text.check import check_markdown, check_text, github_annotations
from sweepledger.commands.check import CheckReport, check_change
from sweepledger.commands.checks import fix_patch
from sweepledger.commands.repository import pushed
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import GeneratorError
from sweepledger.formats.problem_reports import code_quality, sarif
from sweepledger.plan import pool_usage_as_data

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
    def work() -> Response:
        error: GeneratorError | None = None
        patch = b""
        try:
            if hook:
                checked = _hook_response(month)
            else:
                workspace = Workspace.find(response.current_folder())
                checked_change = check_change(workspace, base=base, everything=everything, month=month)
                if report is not None:
                    patch = fix_patch.build_fix(workspace, checked_change.problems, base=base)
                checked = _response(checked_change)
        except GeneratorError as failure:
            error = failure
            checked = Response({}, problems=response.error_problems(error), exit_code=error.exit_code)
        _write_reports(checked, report, summary, patch)
        if form is CheckFormat.GITHUB:
            for line in github_annotations(checked.problems):
                print(line)
        if error is not None:
            raise error
        return checked

    response.respond("check", Format.JSON if form is CheckFormat.JSON else Format.TEXT, work)


def _response(report: CheckReport) -> Response:
    data = {
        "specs": report.specs,
        "built": report.builds.built,
        "unchanged": report.builds.unchanged,
        "untracked": report.untracked,
        "pools": {name: pool_usage_as_data(usage) for name, usage in report.rooms},
    }
    return Response(data, check_text(report), report.problems, EXIT_DRIFT * has_errors(report.problems))


def _hook_response(month: str | None) -> Response:
    """Check each pushed ref that is the branch; all others are accepted."""
    environment = dict(os.environ)  # git commands forget what names the pushed objects
    # With it, git changes no ref, not even in the temporary work tree.
    os.environ.pop("GIT_QUARANTINE_PATH", None)
    by_collector = pushed.is_collector(environment)
    for ref in pushed.read_refs(sys.stdin.read()):
        with pushed.checked_out(response.current_folder(), environment, ref) as workspace:
            if workspace is not None:
                report = check_change(
                    workspace,
                    base=ref.old,
                    everything=ref.old is None,
                    month=month,
                    by_collector=by_collector,
                )
                return _response(report)
    return Response({}, ())


def _write_reports(checked: Response, report: Path | None, summary: Path | None, patch: bytes) -> None:
    """Write the files that --report and --summary request. Raises StorageError."""
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
        text = check_markdown(checked.problems, patch=PATCH_FILE if patch else None)
        storage.append_file(storage.output_path(summary), text.encode("utf-8", "replace"))
