"""Modules that a program imports, as far as its text shows, and those that its code does not contain."""

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from posixpath import join, normpath

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
    """The files of some code, relative to its folder."""

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

    @property
    def source_folders(self) -> tuple[str, ...]:
        """The folders in which packages of a `src` layout are."""
        folders = {str(parent) for path in self.paths for parent in PurePosixPath(path).parents}
        return tuple(sorted(folder for folder in folders if PurePosixPath(folder).name == SOURCE))


def missing_imports(code: CodeFiles, command: Sequence[str], workdir: str = ".") -> tuple[Import, ...]:
    """Return the imports that Python does not find in the code: from where the program starts, through its modules.

    Modules of the standard library are left out. A program whose start is unknown imports nothing.
    """
    named = (normpath(join(workdir, word)) for word in command if word.endswith(".py"))
    scripts = [path for path in named if path in code.paths]
    modules = [name for flag, name in pairwise(command) if flag == "-m"]
    roots = [str(PurePosixPath(script).parent) for script in scripts[:1]] or [workdir]
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
            files = next(filter(None, (code.module(root, name) for root in code.source_folders)), ())
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
    return tuple(sorted(missing.values()))


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
