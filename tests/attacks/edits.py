"""Edits of a work tree by a hostile author, and the errors that the check finds in it."""

from collections.abc import Callable
from pathlib import Path

from sweepledger.problems import Severity
from tests.repository import Sandbox, replace_in

Edit = Callable[[Path], object]
"""Changes the work tree with this root."""


def put(path: str, content: str | bytes) -> Edit:
    def edit(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content.encode() if isinstance(content, str) else content)

    return edit


def replaced(path: str, old: str, new: str) -> Edit:
    return lambda root: replace_in(root / path, old, new)


def errors(sandbox: Sandbox) -> set[tuple[str, str]]:
    """Return file and code of the errors of a change, new files included."""
    sandbox.git("add", "--all")
    problems = sandbox.check(base="origin/main").problems
    return {(problem.file, problem.code) for problem in problems if problem.severity is Severity.ERROR}


def codes(sandbox: Sandbox) -> set[str]:
    return {code for _, code in errors(sandbox)}
