"""Imports that, on this machine, would come from the work tree instead of from the code of a batch."""

import ast
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePath, PurePosixPath
from posixpath import join, normpath

from sweepledger.engine.local import python_environment
from sweepledger.engine.local.python_environment import PythonEnvironment, is_installed
from sweepledger.errors import SpecError
from sweepledger.formats import environment_lock
from sweepledger.problems import Problem, list_names
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


def follow_imports(
    folder: Path, command: Sequence[str], workdir: str
) -> tuple[tuple[Import, ...], frozenset[str]]:
    """Return the imports that Python does not find in the code of a folder, and the files of the imports that it finds.

    Imports are followed from the module that a command starts. Modules of the standard library are
    omitted. A program whose first module is unknown imports nothing.
    """
    paths = {
        str((Path(parent) / name).relative_to(folder))
        for parent, _, names in os.walk(folder, followlinks=True)
        for name in names
        if name.endswith(".py")
    }
    named = (normpath(join(workdir, word)) for word in command if word.endswith(".py"))
    waiting = [path for path in named if path in paths]
    roots = [str(PurePosixPath(script).parent) for script in waiting[:1]] or [workdir]
    parents = {parent for path in paths for parent in PurePosixPath(path).parents}
    sources = sorted(str(parent) for parent in parents if parent.name == SOURCE)
    missing: dict[str, Import] = {}
    known: set[str] = set()

    def follow(name: str, file: str, line: int) -> None:
        if name in known or name in sys.stdlib_module_names:
            return
        known.add(name)
        files = _module_files(paths, roots, name)
        if not files:
            missing[name] = Import(name, file, line)
            # What is installed from these folders imports in turn.
            files = _module_files(paths, sources, name)
        waiting.extend(files)

    for flag, module in pairwise(command):
        if flag == "-m":
            follow(module.partition(".")[0], "", 0)
    seen: set[str] = set()
    while waiting and len(seen) < MAX_FILES:
        path = waiting.pop(0)
        if path not in seen:
            seen.add(path)
            for name, line in imported_names((folder / path).read_bytes()):
                follow(name, path, line)
    return tuple(sorted(missing.values())), frozenset(seen)


def _module_files(paths: Collection[str], folders: Iterable[str], name: str) -> Sequence[str]:
    """Return the Python files of a top-level module in the first of some folders that has it."""
    for place in (name if folder == "." else f"{folder}/{name}" for folder in folders):
        if f"{place}.py" in paths:
            return (f"{place}.py",)
        if files := sorted(path for path in paths if path.startswith(f"{place}/")):
            return files
    return ()


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


LISTED_PACKAGES = 10
ENV_PROGRAMS = frozenset({"${env}", "env", "/usr/bin/env"})


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """A program as it starts on this machine."""

    program: Program
    run: RunConfig
    code: Path

    @property
    def python(self) -> str:
        """The Python interpreter of the program: the one that its command names, else the launcher's."""
        words = [word for word in self.program.command if word not in ENV_PROGRAMS][:1]
        named = [word for word in words if PurePath(word).name.startswith("python")]
        return named[0] if named else self.run.interpreter

    def inspect(self, names: Sequence[str] = (), folders: Iterable[Path] = ()) -> PythonEnvironment | None:
        """Ask its Python interpreter about modules, with some folders first in the path; None if it does not answer."""
        declared = filter(None, self.run.environment.get("PYTHONPATH", "").split(os.pathsep))
        paths = (*map(str, folders), *(str(self.code / folder) for folder in declared))
        return python_environment.inspect(self.python, names, python_path=paths)


def check_imports(
    program: StartedProgram, repository: Repository, place: str
) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """Find the imports of a program that would come from the work tree; `place` is what problems are about.

    Return the folders of the code in which Python must look first, because an editable install names the same ones of
    the work tree, and a problem for each import that would come from the work tree all the same. Only the text of the
    code shows its imports; nothing is imported.
    """
    imports, _ = follow_imports(program.code, program.program.command, program.program.workdir or ".")
    names = [wanted.name for wanted in imports]
    known = program.inspect(names) if names else None
    if known is None:
        return (), ()
    root, code = repository.folder.resolve(), program.code

    def from_work_tree(known: PythonEnvironment, name: str) -> Path | None:
        """Return the path of a module in the work tree if the module is neither installed nor in the code."""
        for listed in known.modules.get(name, ()):
            path = listed.resolve()
            is_code = listed.is_relative_to(code) or path.is_relative_to(code.resolve())
            if path.is_relative_to(root) and not is_code and not is_installed(path):
                return path.relative_to(root)
        return None

    shadowed = filter(None, (from_work_tree(known, name) for name in names))
    folders = tuple(sorted({code / path.parent for path in shadowed if (code / path).exists()}))
    if folders:
        known = program.inspect(names, folders) or known
    problems = []
    for wanted in imports:
        path = from_work_tree(known, wanted.name)
        if path is None:
            continue
        edited = uncommitted_paths(repository, path.as_posix())
        state = f", which has uncommitted changes ({list_names(edited)})" if edited else ""
        importer = f"{wanted.file}:{wanted.line} imports" if wanted.file else "the command starts"
        message = f"{importer} {wanted.name}, which the code lacks: it would come from {path} of the work tree{state}"
        hint = f"add {path} to the code by run.code.path, or install {wanted.name} without -e"
        problems.append(Problem(place, 0, 0, "run.code", message, "import-outside-code", hint))
    return folders, tuple(problems)


def locked_python_path(program: StartedProgram, repository: Repository, place: str) -> tuple[Path, ...]:
    """Return the folders of a program's code in which Python must look first on this machine.

    Raises SpecError if a trial would import from the work tree all the same.
    """
    folders, problems = check_imports(program, repository, place)
    if problems:
        raise SpecError(problems)
    return folders


def environment_differences(program: StartedProgram) -> tuple[str, ...]:
    """Return how the installed packages differ from a program's locked packages; nothing if it locks none.

    An environment that cannot be read is a difference.
    """
    lock = program.program.environment
    if lock is None:
        return ()
    pins = environment_lock.read(lock.path, (program.code / lock.path).read_bytes())
    known = program.inspect()
    if known is None:
        return (f"{program.python} cannot say which packages it has",)
    return environment_lock.differences(pins, known.distributions)


def refuse_other_environment(program: StartedProgram, sweep: str, place: str) -> None:
    """Raise SpecError if the installed packages differ from those that a program has locked."""
    differences, lock = environment_differences(program), program.program.environment
    if differences and lock is not None:
        more = len(differences) - LISTED_PACKAGES
        listed = "; ".join(differences[:LISTED_PACKAGES]) + (f"; and {more} more" if more > 0 else "")
        message = f"{program.python} does not have the packages of {lock.path}: {listed}"
        update = f"`sweep generate {sweep} --update`"
        hint = f"install what {lock.path} locks; or write and commit a new one, then {update}"
        raise SpecError([Problem(place, 0, 0, "run.environment_lock", message, "environment-differs", hint)])
