"""The output of `check`: text, the Markdown summary of a workflow step, and GitHub annotations.

Quoted text is untrusted: an annotation is one line, and contains no other workflow command.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from sweepledger.cli.response import has_errors
from sweepledger.cli.text import plan
from sweepledger.cli.text.plan_markdown import fit_comment
from sweepledger.cli.text.values import count_text
from sweepledger.problems import Problem, Severity, escape_cell
from sweepledger.results.display import escape_markdown, markdown_code
from sweepledger.structs.names import LOCK_FILE

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sweepledger.commands.check import CheckReport

MOST_PATHS = 10
"""Untracked paths that are listed."""
MOST_ROWS = 100
"""Problems in the Markdown table."""
LONGEST_CELL = 200
"""Characters of a cell of the Markdown table."""
MOST_ANNOTATIONS = 10
"""Annotations for errors, and for warnings: GitHub shows no more of one step."""
LONGEST_ANNOTATION = 1_000
"""Characters of an annotation; GitHub cuts at 4 KiB."""

BATCH_FOLDER = re.compile(r"overlays/(?:active|archive)/[^/]+")


def check_text(report: CheckReport) -> tuple[RenderableType, ...]:
    """Return the result of a check without its problems: pools, counts, untracked files."""
    built = f", {len(report.builds.built)} overlay(s) built" if report.builds.built else ""
    unchanged = f", {len(report.builds.unchanged)} as merged" if report.builds.unchanged else ""
    result, colour = ("problems", "red") if has_errors(report.problems) else ("ok", "green")
    pools = (Text(f"{name}: {plan.pool_usage(usage)}") for name, usage in report.rooms)
    result_line = Text(f"{result}: {report.specs} spec(s){built}{unchanged}", colour)
    return (*pools, result_line, *(Text(line, "yellow") for line in _untracked_lines(report.untracked)))


def _untracked_lines(paths: tuple[str, ...]) -> Iterator[str]:
    if not paths:
        return
    yield f"{count_text(len(paths), 'path')} not in git yet, so a merge would not contain them:"
    yield from (f"  git add {shlex.quote(path)}" for path in itertools.islice(paths, MOST_PATHS))
    if len(paths) > MOST_PATHS:
        yield f"  … {len(paths) - MOST_PATHS:,} more; `git status` shows them"


def check_markdown(problems: Sequence[Problem], *, patch: str | None) -> str:
    """Return the problems of a change as Markdown, with the name of the patch that fixes them, if there is one."""
    return fit_comment([*_markdown_lines(sorted(problems), patch), ""])


def _markdown_lines(problems: Sequence[Problem], patch: str | None) -> Iterator[str]:
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    yield from (
        f"## Not ready to merge: {count_text(errors, 'problem')}" if errors else "## Ready to merge",
        "",
    )
    if problems:
        yield "| location | problem | hint |"
        yield "| --- | --- | --- |"
        yield from map(_problem_row, problems[:MOST_ROWS])
        yield ""
    if len(problems) > MOST_ROWS:
        yield from (f"… {len(problems) - MOST_ROWS:,} more; `sweep check` shows them.", "")
    if patch and has_errors(problems):
        yield (
            f"To fix the change, download `{patch}` from the artifact of this workflow run, "
            f"run `git apply {patch}`, and commit."
        )


def _problem_row(problem: Problem) -> str:
    position = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
    location = markdown_code(plan.shorten(position, LONGEST_CELL)) if position else ""
    message = f"{problem.path}: {problem.message}" if problem.path else problem.message
    severity = "" if problem.severity is Severity.ERROR else "warning: "
    hint = _markdown_cell(problem.hint or "")
    return f"| {location} | {severity}{_markdown_cell(message)} `{problem.code}` | {hint} |"


def _markdown_cell(text: str) -> str:
    return escape_markdown(plan.shorten(text, LONGEST_CELL))


def github_annotations(problems: Iterable[Problem]) -> Iterator[str]:
    """Return annotations for the first errors and warnings, with the number of the others."""
    ordered = sorted(problems)
    for severity in Severity:
        selected = [problem for problem in ordered if problem.severity is severity]
        first = selected if len(selected) <= MOST_ANNOTATIONS else selected[: MOST_ANNOTATIONS - 1]
        yield from map(_annotation, first)
        if len(first) < len(selected):
            count = len(selected) - len(first)
            yield f"::{severity} title=more::{count:,} more are in the summary of this workflow run"


def _annotation(problem: Problem) -> str:
    # A folder has no lines: a problem of a batch is annotated in its lock.
    file = f"{problem.file}/{LOCK_FILE}" if BATCH_FOLDER.fullmatch(problem.file) else problem.file
    position = {"line": problem.line, "col": problem.column} if problem.line else {"line": 1}
    location = {"file": file, **position} if file else {}
    properties = {**location, "title": problem.code}
    property_list = ",".join(f"{name}={_escape_property(str(value))}" for name, value in properties.items())
    path = f"{problem.path}: " if problem.path else ""
    lines = [f"{path}{problem.message}", *([problem.hint] if problem.hint else [])]
    return f"::{problem.severity} {property_list}::{'%0A'.join(map(_escape_message, lines))}"


def _escape_message(text: str) -> str:
    return escape_cell(text[:LONGEST_ANNOTATION]).replace("%", "%25")


def _escape_property(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")
