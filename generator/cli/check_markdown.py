"""`sweep check` as a step's summary: the verdict, every problem with its place and the way out, bounded."""

from collections.abc import Iterator, Sequence

from generator.cli import plan_words as words
from generator.cli.answer import has_errors
from generator.cli.plan_markdown import bounded
from generator.cli.values import counted
from generator.problems import Problem, Severity
from generator.results.words import code, markdown

MOST_ROWS = 100
LONGEST = 200
"""Characters of a cell."""


def verdict(problems: Sequence[Problem], *, patch: str | None) -> str:
    """Write what keeps a change from being merged, and the name of the patch that would mend it, if any."""
    return bounded([*_lines(sorted(problems), patch), ""])


def _lines(found: Sequence[Problem], patch: str | None) -> Iterator[str]:
    errors = sum(problem.severity is Severity.ERROR for problem in found)
    yield from (f"## Not yet: {counted(errors, 'problem')}" if errors else "## May be merged", "")
    if found:
        yield "| where | what | way out |"
        yield "| --- | --- | --- |"
        yield from map(_row, found[:MOST_ROWS])
        yield ""
    if len(found) > MOST_ROWS:
        yield from (f"… {len(found) - MOST_ROWS:,} more; `sweep check` shows them.", "")
    if patch and has_errors(found):
        yield f"`{patch}` in this run's artifact writes what is missing: `git apply {patch}`, and commit."


def _row(problem: Problem) -> str:
    place = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
    said = f"{problem.path}: {problem.message}" if problem.path else problem.message
    severity = "" if problem.severity is Severity.ERROR else "warning: "
    where = code(words.cut(place, LONGEST)) if place else ""
    return f"| {where} | {severity}{_cell(said)} `{problem.code}` | {_cell(problem.hint or '')} |"


def _cell(text: str) -> str:
    return markdown(words.cut(text, LONGEST))
