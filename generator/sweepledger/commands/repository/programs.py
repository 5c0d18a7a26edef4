"""The program that a sweep's next batch runs, and whether its code has the files that the spec names.

The locked program is kept if it satisfies the spec; otherwise the current one is locked.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import RepositoryError
from sweepledger.problems import Problem, Severity
from sweepledger.reader import safe_repr
from sweepledger.repo.git import Repository, uncommitted_paths
from sweepledger.spec import ParsedSpec
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs.program import Code, Data, Program
from sweepledger.structs.settings import Settings
from sweepledger.structs.sweep import Script, Sweep

UNKNOWN_TREE = ""
"""A placeholder for the code tree if only the rest of a program matters."""


def requested_program(settings: Settings, sweep: Sweep, *, tree: str = UNKNOWN_TREE) -> Program:
    """Return the program that spec and settings require, given its code tree."""
    run = sweep.run
    dataset = None if run.data is None else settings.datasets[run.data]
    return Program(
        image=settings.image_of(run.image),
        command=sweep.command,
        code=Code(run.code_path, tree),
        data=None if dataset is None else Data(dataset.name, dataset.identity),
    )


def current_program(workspace: Workspace, sweep: Sweep) -> Program:
    """Return the current program. Raises RepositoryError if the code has uncommitted changes."""
    path = sweep.run.code_path
    head = workspace.repository.commit("HEAD")
    if head is None:
        raise RepositoryError(
            "nothing is committed yet, so no code can be locked", hint="commit the code first"
        )
    dirty = uncommitted_paths(workspace.repository, path)
    if dirty:
        listed = ", ".join(dirty[:3]) + (" …" if len(dirty) > 3 else "")  # noqa: PLR2004 - enough to find them
        raise RepositoryError(
            f"{path}/ has uncommitted changes ({listed}): a batch runs committed code only",
            hint=f"commit or stash them (`git status {path}`), or `sweep run {sweep.name} --commit-code`",
        )
    tree = workspace.repository.tree_id(head, path)
    if tree is None:
        raise RepositoryError(
            f"{path}/ is not a folder in the last commit, so no code can be locked",
            hint=f"commit it, or set the code's folder: `run: {{code: {{path: …}}}}` in {sweep.path}",
        )
    return requested_program(workspace.settings, sweep, tree=tree)


def locked_program(workspace: Workspace, sweep: Sweep, newest: Program | None) -> Program:
    """Return the newest batch's program if it satisfies the spec, else the current one."""
    return _reusable_program(workspace.settings, sweep, newest) or current_program(workspace, sweep)


def locked_program_at(
    repository: Repository, commit: str, settings: Settings, sweep: Sweep, newest: Program | None
) -> Program:
    """Return the newest batch's program if it satisfies the spec, else one with the code of a commit.

    Raises RepositoryError.
    """
    kept = _reusable_program(settings, sweep, newest)
    if kept is not None:
        return kept
    path = sweep.run.code_path
    tree = repository.tree_id(commit, path)
    if tree is None:
        raise RepositoryError(
            f"{path}/ is not a folder in {commit[:12]}, so no code can be locked",
            hint=f"commit it, or set the code's folder: `run: {{code: {{path: …}}}}` in {sweep.path}",
        )
    return requested_program(settings, sweep, tree=tree)


def _reusable_program(settings: Settings, sweep: Sweep, newest: Program | None) -> Program | None:
    named = sweep.run.image is not None
    requested = requested_program(settings, sweep)
    return newest if newest is not None and newest.answers(requested, image_named=named) else None


MISSING_SCRIPT_CODE = "program-missing"
START_FILE = "__main__.py"
"""A folder with it can be started as if it were a file."""

ListFolder = Callable[[PurePosixPath], frozenset[str] | None]
"""Returns the files in a folder of the code; None if unknown."""


def missing_scripts(repository: Repository, parsed: ParsedSpec, program: Program) -> Iterator[Problem]:
    """Yield a problem for each script that a program's code lacks: an error if the sweep cannot run without it."""
    if parsed.sweep.scripts:
        list_folder = _list_committed(repository, program.code.tree)
        yield from _missing_scripts(repository.folder, parsed, list_folder, "committed file")


def missing_scripts_here(root: Path, parsed: ParsedSpec) -> Iterator[Problem]:
    """Yield a warning for each script that the work tree lacks: it may still be written."""
    code_path = parsed.sweep.run.code_path
    folder = root / code_path
    if os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
        problems = _missing_scripts(root, parsed, _list_work_tree(folder), "file")
        yield from (replace(problem, severity=Severity.WARNING) for problem in problems)
        return
    message = f"{code_path}/ is not a folder here, and it should contain the code"
    hint = "set the code's folder: `run: {code: {path: …}}`; the default is trainer"
    yield parsed.source.problem(
        message, "run", "code_path", code=MISSING_SCRIPT_CODE, hint=hint, severity=Severity.WARNING
    )


def _missing_scripts(
    root: Path, parsed: ParsedSpec, list_folder: ListFolder, description: str
) -> Iterator[Problem]:
    sweep, folder = parsed.sweep, parsed.sweep.run.code_path
    for number, script in enumerate(sweep.scripts):
        if not script.is_inside:
            message, hint = _outside_code(folder, script, list_folder)
        elif not _has_script(list_folder, script.path):
            message = f"must name a {description} of {folder}/, got {safe_repr(script.path)}"
            hint = _missing_script_hint(root, sweep, script, list_folder)
        else:
            continue
        yield parsed.source.problem(
            message, "scripts", number, code=MISSING_SCRIPT_CODE, hint=hint, severity=script.severity
        )


def _outside_code(folder: str, script: Script, list_folder: ListFolder) -> tuple[str, str | None]:
    """Return message and hint for a script outside the code folder, which only an image could contain."""
    path = f"{folder}/{script.path}"
    message = (
        f"must begin with {folder}/, since a trial starts beside that folder, got {safe_repr(script.path)}"
    )
    hint = (
        f"write {path}"
        if _has_script(list_folder, script.path)
        else f"of the repository a trial has {folder}/ alone; what only the image holds has an absolute path"
    )
    return message, hint


def _has_script(list_folder: ListFolder, script: str) -> bool:
    path = PurePosixPath(script)
    names = list_folder(path.parent)
    return names is None or path.name in names or START_FILE in (list_folder(path) or ())


def _missing_script_hint(root: Path, sweep: Sweep, script: Script, list_folder: ListFolder) -> str | None:
    folder = sweep.run.code_path
    if _has_script(_list_work_tree(root / folder), script.path):
        return f"it exists here: commit it, then `sweep update {sweep.name}` locks the new code"
    inside = script.path.removeprefix(f"{folder}/")
    if inside != script.path and _has_script(list_folder, inside):
        return f"the path begins inside {folder}/: write {inside}"
    path = PurePosixPath(script.path)
    return did_you_mean(path.name, list_folder(path.parent) or ())


def _list_committed(repository: Repository, tree: str) -> ListFolder:
    try:
        entries = repository.files(tree)
    except RepositoryError:  # a shallow clone may lack what was locked long ago
        return lambda _: None
    folders: dict[str, set[str]] = {}
    for path in entries:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder or ".", set()).add(name)
    links = {path for path, entry in entries.items() if entry.is_link}

    def look(folder: PurePosixPath) -> frozenset[str] | None:
        if links & {str(folder), *map(str, folder.parents)}:
            return None
        return frozenset(folders.get(str(folder), ()))

    return look


def _list_work_tree(root: Path) -> ListFolder:
    def look(folder: PurePosixPath) -> frozenset[str] | None:
        try:
            return frozenset(entry.name for entry in (root / folder).iterdir() if not entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        except OSError:
            return None

    return look
