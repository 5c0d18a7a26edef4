"""Problems as annotations of a code host's pull request: GitHub's workflow commands, a line each.

A stranger wrote what is quoted here, so each is one line, and the only command on it is ours.
"""

import re
from collections.abc import Iterable, Iterator

from generator.problems import Problem, Severity, one_cell

MOST = 10
"""Of errors and of warnings: GitHub shows no more of one step."""

LONGEST = 1_000
"""Characters of a message; GitHub cuts at 4 KiB."""

BATCH = re.compile(r"overlays/(?:active|archive)/[^/]+")
LOCK_FILE = "batch.yaml"
"""Stands for its folder: a folder has no line."""


def annotations(problems: Iterable[Problem]) -> Iterator[str]:
    """Write the first of the errors and of the warnings, and how many more there are."""
    found = sorted(problems)
    for severity in Severity:
        some = [problem for problem in found if problem.severity is severity]
        shown = some if len(some) <= MOST else some[: MOST - 1]
        yield from map(_annotation, shown)
        if len(shown) < len(some):
            yield f"::{severity} title=more::{len(some) - len(shown):,} more stand in the summary of this run"


def _annotation(problem: Problem) -> str:
    file = f"{problem.file}/{LOCK_FILE}" if BATCH.fullmatch(problem.file) else problem.file
    place = {"line": problem.line, "col": problem.column} if problem.line else {"line": 1}
    where = {"file": file, **place} if file else {}
    properties = {**where, "title": problem.code}
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    path = f"{problem.path}: " if problem.path else ""
    lines = [f"{path}{problem.message}", *([problem.hint] if problem.hint else [])]
    return f"::{problem.severity} {written}::{'%0A'.join(map(_message, lines))}"


def _message(text: str) -> str:
    return one_cell(text[:LONGEST]).replace("%", "%25")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
