"""Whether the code has the files that a spec names: a slip there would cost every trial of the sweep."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from generator.commands.workspace import Workspace
from generator.errors import RepositoryError
from generator.problems import Problem, Severity
from generator.reader import shown
from generator.spec.nearest import did_you_mean
from generator.structs.beside import Script
from generator.structs.program import Program
from generator.structs.sweep import Sweep

CODE = "program-missing"
START_FILE = "__main__.py"
"""A folder with it can be started as if it were a file."""
LINK_MODE = "120000"

Look = Callable[[PurePosixPath], frozenset[str] | None]
"""Names the files in a folder of the code; None where nobody can say."""


def lacking(workspace: Workspace, sweep: Sweep, program: Program) -> Iterator[Problem]:
    """Tell what the code of a program lacks: an error where the sweep cannot run without."""
    if sweep.scripts:
        look = _committed(workspace, program.code.tree)
        yield from _lacking(workspace, sweep, look, "committed file")


def lacking_here(workspace: Workspace, sweep: Sweep) -> Iterator[Problem]:
    """Warn of what the work tree lacks: it may be written yet."""
    folder = workspace.root / sweep.run.code_path
    if os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
        found = _lacking(workspace, sweep, _lying(folder), "file")
        yield from (replace(problem, severity=Severity.WARNING) for problem in found)
        return
    message = f"{sweep.run.code_path}/ is no folder here, and the code is in it"
    hint = "say where the code lies: `run: {code: {path: …}}`; the default is trainer"
    yield Problem.at(sweep.path, sweep.code_place, message, code=CODE, hint=hint, severity=Severity.WARNING)


def _lacking(workspace: Workspace, sweep: Sweep, look: Look, what: str) -> Iterator[Problem]:
    for script in sweep.scripts:
        if not script.is_inside:
            yield _outside(sweep, script, look)
        elif not _has(look, script.path):
            message = f"must name a {what} of {sweep.run.code_path}/, got {shown(script.path)}"
            hint = _hint(workspace, sweep, script, look)
            yield Problem.at(
                sweep.path, script.place, message, code=CODE, hint=hint, severity=script.severity
            )


def _outside(sweep: Sweep, script: Script, look: Look) -> Problem:
    """Warn of a program beside the folder of the code; only an image of its own might hold one there."""
    folder = sweep.run.code_path
    path = f"{folder}/{script.path}"
    message = f"must begin with {folder}/, since a trial starts beside that folder, got {shown(script.path)}"
    hint = (
        f"write {path}"
        if _has(look, script.path)
        else f"of the repository a trial has {folder}/ alone; what only the image holds has an absolute path"
    )
    return Problem.at(sweep.path, script.place, message, code=CODE, hint=hint, severity=script.severity)


def _has(look: Look, script: str) -> bool:
    path = PurePosixPath(script)
    names = look(path.parent)
    return names is None or path.name in names or START_FILE in (look(path) or ())


def _hint(workspace: Workspace, sweep: Sweep, script: Script, look: Look) -> str | None:
    folder = sweep.run.code_path
    if _has(_lying(workspace.root / folder), script.path):
        return f"it lies here: commit it, then `sweep update {sweep.name}` takes the code as it is then"
    inside = script.path.removeprefix(f"{folder}/")
    if inside != script.path and _has(look, inside):
        return f"the path begins inside {folder}/: write {inside}"
    path = PurePosixPath(script.path)
    return did_you_mean(path.name, look(path.parent) or ())


def _committed(workspace: Workspace, tree: str) -> Look:
    try:
        entries = workspace.repository.files(tree)
    except RepositoryError:  # a shallow clone may lack what was locked long ago
        return lambda _: None
    folders: dict[str, set[str]] = {}
    for path in entries:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder or ".", set()).add(name)
    links = {path for path, entry in entries.items() if entry.mode == LINK_MODE}

    def look(folder: PurePosixPath) -> frozenset[str] | None:
        if links & {str(folder), *map(str, folder.parents)}:
            return None
        return frozenset(folders.get(str(folder), ()))

    return look


def _lying(root: Path) -> Look:
    def look(folder: PurePosixPath) -> frozenset[str] | None:
        try:
            return frozenset(entry.name for entry in (root / folder).iterdir() if not entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        except OSError:
            return None

    return look
