"""Imports that would come from the work tree instead of from the code of a batch, on this machine."""

import ast
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePath, PurePosixPath
from posixpath import join, normpath

from sweepledger.engine.local import python_environment
from sweepledger.engine.local.python_environment import PythonEnvironment, is_installed
from sweepledger.errors import SpecError
from sweepledger.formats import environment_lock
from sweepledger.problems import Problem, list_names
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository, uncommitted_paths
from sweepledger.structs.program import Program
from sweepledger.structs.run_config import RunConfig

MAX_FILES = 2000
MAX_BYTES = 1024 * 1024
"""Files of a program that are read, and bytes of one: more is generated, or data."""
SOURCE = "src"
"""The folder of packages that is not where a script finds them, until they are installed."""


@dataclass(frozen=True, slots=True, order=True)
class Import:
    """The first import of a top-level module."""

    name: str
    file: str
    line: int


@dataclass(frozen=True)
class CodeFiles:
    """The files of some code, relative to the folder that a trial starts in."""

    paths: AbstractSet[str]
    read: Callable[[str], bytes]

    def module(self, folder: str, name: str) -> tuple[str, ...]:
        """Return the Python files of a top-level module in a folder; none if the folder does not have it."""
        place = name if folder == "." else f"{folder}/{name}"
        if f"{place}.py" in self.paths:
            return (f"{place}.py",)
        return tuple(
            sorted(path for path in self.paths if path.startswith(f"{place}/") and path.endswith(".py"))
        )


def program_files(folder: Path, command: Sequence[str], workdir: str) -> frozenset[str]:
    """Return the Python files of a folder that a command starts, and that these import."""
    return _follow_imports(_code_files(folder), command, workdir)[1]


def missing_imports(code: CodeFiles, command: Sequence[str], workdir: str = ".") -> tuple[Import, ...]:
    """Return the imports that Python does not find in the code: from where the program starts, through its modules.

    Modules of the standard library are left out. A program whose start is unknown imports nothing.
    """
    return _follow_imports(code, command, workdir)[0]


def _follow_imports(
    code: CodeFiles, command: Sequence[str], workdir: str
) -> tuple[tuple[Import, ...], frozenset[str]]:
    named = (normpath(join(workdir, word)) for word in command if word.endswith(".py"))
    scripts = [path for path in named if path in code.paths]
    modules = [name for flag, name in pairwise(command) if flag == "-m"]
    roots = [str(PurePosixPath(script).parent) for script in scripts[:1]] or [workdir]
    parents = {parent for path in code.paths for parent in PurePosixPath(path).parents}
    sources = sorted(str(parent) for parent in parents if parent.name == SOURCE)
    waiting = list(scripts)
    missing: dict[str, Import] = {}
    known: set[str] = set()

    def follow(name: str, file: str, line: int) -> None:
        if name in known or name in sys.stdlib_module_names:
            return
        known.add(name)
        files = next(filter(None, (code.module(root, name) for root in roots)), ())
        if not files:
            missing[name] = Import(name, file, line)
            # What is installed from these folders imports in turn.
            files = next(filter(None, (code.module(root, name) for root in sources)), ())
        waiting.extend(files)

    for module in modules:
        follow(module.partition(".")[0], "", 0)
    seen: set[str] = set()
    while waiting and len(seen) < MAX_FILES:
        path = waiting.pop(0)
        if path not in seen:
            seen.add(path)
            for name, line in imported_names(code.read(path)):
                follow(name, path, line)
    return tuple(sorted(missing.values())), frozenset(seen)


def imported_names(content: bytes) -> Iterator[tuple[str, int]]:
    """Yield the top-level modules that a file imports absolutely, with their lines; none if it cannot be parsed."""
    if len(content) > MAX_BYTES:
        return
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from ((alias.name.partition(".")[0], node.lineno) for alias in names)
            case ast.ImportFrom(str(module), _, 0):
                yield module.partition(".")[0], node.lineno


OUTSIDE_IMPORT = "import-outside-code"
OTHER_ENVIRONMENT = "environment-differs"
LISTED_PACKAGES = 10
PYTHON_NAME = "python"
PYTHON_PATH = "PYTHONPATH"
ENV_PROGRAMS = frozenset({"${env}", "env", "/usr/bin/env"})


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """A program as it starts on this machine."""

    command: tuple[str, ...]
    interpreter: str
    """The interpreter of the launcher and of `${interpreter}`."""
    variables: Mapping[str, str]
    """Declared variables of its environment."""
    code: Path
    """The folder of its code."""
    workdir: str = "."
    """Where in it the program starts."""

    @property
    def python(self) -> str:
        """The Python of the program: the one that its command names, else the launcher's."""
        words = [word for word in self.command if word not in ENV_PROGRAMS][:1]
        named = [word for word in words if PurePath(word).name.startswith(PYTHON_NAME)]
        return named[0] if named else self.interpreter

    @property
    def python_path(self) -> tuple[str, ...]:
        """The declared folders in which Python looks first."""
        folders = filter(None, self.variables.get(PYTHON_PATH, "").split(os.pathsep))
        return tuple(str(self.code / folder) for folder in folders)


@dataclass(frozen=True, slots=True)
class ImportCheck:
    """Where the imports of a program would come from."""

    python_path: tuple[Path, ...] = ()
    """Folders of the code that must come first, because an editable install names the same ones of the work tree."""
    problems: tuple[Problem, ...] = ()
    """Imports that would come from the work tree all the same."""


def check_imports(program: StartedProgram, repository: Repository, place: str) -> ImportCheck:
    """Find the imports of a program that would come from the work tree; `place` is what problems are about.

    Only the text of the code tells what it imports; nothing is imported.
    """
    imports = missing_imports(_code_files(program.code), program.command, program.workdir)
    names = [wanted.name for wanted in imports]
    known = (
        python_environment.inspect(program.python, names, python_path=program.python_path) if names else None
    )
    if known is None:
        return ImportCheck()
    root = repository.folder.resolve()
    found = {name: _in_work_tree(known, name, root, program.code) for name in names}
    folders = {
        folder
        for path in filter(None, found.values())
        for folder in (program.code / path.parent.relative_to(root),)
        if (folder / path.name).exists()
    }
    ordered = tuple(sorted(folders))
    if ordered:
        paths = (*map(str, ordered), *program.python_path)
        known = python_environment.inspect(program.python, names, python_path=paths) or known
    return ImportCheck(ordered, tuple(_problems(imports, known, repository, (program.code, place))))


def started_program(program: Program, run: RunConfig, code: Path) -> StartedProgram:
    """Return a program as it starts on this machine."""
    return StartedProgram(program.command, run.interpreter, run.environment, code, program.workdir or ".")


def locked_python_path(
    batch: StoredBatch, program: StartedProgram, repository: Repository
) -> tuple[Path, ...]:
    """Return the folders of a batch's code in which Python must look first on this machine.

    Raises SpecError if a trial would import from the work tree all the same.
    """
    checked = check_imports(program, repository, batch.folder)
    if checked.problems:
        raise SpecError(checked.problems)
    return checked.python_path


def environment_differences(batch: StoredBatch, program: StartedProgram) -> tuple[str, ...]:
    """Return how the installed packages differ from those that a batch has locked; none if it has locked none.

    An environment that cannot be read is a difference.
    """
    lock = batch.lock.program.environment
    if lock is None:
        return ()
    pinned = environment_lock.read(lock.path, (program.code / lock.path).read_bytes())
    known = python_environment.inspect(program.python, python_path=program.python_path)
    if known is None:
        return (f"{program.python} cannot say which packages it has",)
    return pinned.differences(known.distributions)


def refuse_other_environment(batch: StoredBatch, program: StartedProgram, place: str) -> None:
    """Raise SpecError if the installed packages differ from those that a batch has locked."""
    differences, lock = environment_differences(batch, program), batch.lock.program.environment
    if differences and lock is not None:
        more = len(differences) - LISTED_PACKAGES
        listed = "; ".join(differences[:LISTED_PACKAGES]) + (f"; and {more} more" if more > 0 else "")
        message = f"{program.python} does not have the packages of {lock.path}: {listed}"
        update = f"`sweep generate {batch.sweep} --update`"
        hint = f"install what {lock.path} locks; or write and commit a new one, then {update}"
        raise SpecError([Problem(place, 0, 0, "run.environment_lock", message, OTHER_ENVIRONMENT, hint)])


def _code_files(folder: Path) -> CodeFiles:
    paths = frozenset(
        str((Path(parent) / name).relative_to(folder))
        for parent, _, names in os.walk(folder, followlinks=True)
        for name in names
        if name.endswith(".py")
    )
    return CodeFiles(paths, lambda path: (folder / path).read_bytes())


def _in_work_tree(known: PythonEnvironment, name: str, root: Path, code: Path) -> Path | None:
    """Return the file or folder of a module if it is in the work tree, and neither installed nor in the code."""
    for place in known.modules.get(name, ()):
        path = place.resolve()
        is_code = place.is_relative_to(code) or path.is_relative_to(code.resolve())
        if path.is_relative_to(root) and not is_code and not is_installed(path):
            return path
    return None


def _problems(
    imports: Sequence[Import], known: PythonEnvironment, repository: Repository, code_at: tuple[Path, str]
) -> Iterator[Problem]:
    root, (code, place) = repository.folder.resolve(), code_at
    for wanted in imports:
        path = _in_work_tree(known, wanted.name, root, code)
        if path is None:
            continue
        shown = path.relative_to(root).as_posix()
        edited = uncommitted_paths(repository, shown)
        state = f", which has uncommitted changes ({list_names(edited)})" if edited else ""
        importer = f"{wanted.file}:{wanted.line} imports" if wanted.file else "the command starts"
        message = f"{importer} {wanted.name}, which the code lacks: it would come from {shown} of the work tree{state}"
        hint = f"add {shown} to the code by run.code.path, or install {wanted.name} without -e"
        yield Problem(place, 0, 0, "run.code", message, OUTSIDE_IMPORT, hint)
