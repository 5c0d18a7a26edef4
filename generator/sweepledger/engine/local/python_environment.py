"""The Python environment of a program on this machine: the origins of modules, and the installed distributions."""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from sweepledger import process
from sweepledger.process import LimitExceededError, Limits

PROBE = """
import importlib.util, json, sys
from importlib.metadata import distributions

if sys.path and not sys.path[0]:
    del sys.path[0]  # the program has its own folder there
modules = {}
for name in sys.argv[1:]:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        continue
    if spec is not None:
        folders = list(spec.submodule_search_locations or [])
        modules[name] = folders or ([spec.origin] if spec.has_location else [])
installed = {}
for distribution in () if sys.argv[1:] else distributions():
    name = distribution.metadata["Name"]
    if name:
        installed.setdefault(name, distribution.version)
json.dump({"modules": modules, "distributions": installed}, sys.stdout)
"""
"""For Python 3.8 and newer. The first distribution of a name is the one that Python imports."""

PROBE_LIMITS = Limits(seconds=60, output=16 * 1024 * 1024)
INSTALLED_FOLDERS = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages; a virtual environment is often inside the work tree."""


class PythonEnvironment(Struct, frozen=True):
    """The answers of one interpreter."""

    modules: Mapping[str, tuple[Path, ...]]
    """Where the modules that were asked for are: files, or folders of packages."""
    distributions: Mapping[str, str]
    """Installed distributions and their versions; none if modules were asked for, since listing them takes longer."""


def program_path() -> str:
    """Return a trial's PATH on this machine: the activated Python environment, this program's, the system's."""
    active = [
        Path(os.environ[name]) / "bin" for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if os.environ.get(name)
    ]
    folders = [folder for folder in active if os.access(folder / "python", os.X_OK)]
    return os.pathsep.join(dict.fromkeys(map(str, (*folders, Path(sys.executable).parent, os.defpath))))


def installed_program(name: str) -> str | None:
    """Return the word that starts a program of this machine: its name, or its path if only the user's PATH has it.

    None if the program is not here.
    """
    return name if shutil.which(name, path=program_path()) else shutil.which(name)


def inspect(
    interpreter: str, names: Sequence[str] = (), *, python_path: Sequence[str] = ()
) -> PythonEnvironment | None:
    """Ask an interpreter for the locations of modules, without importing them; without names, for all distributions.

    Return None if it does not answer.
    """
    program = shutil.which(interpreter, path=program_path())
    if program is None:
        return None
    environment = {"PATH": program_path(), "HOME": os.devnull}
    if python_path:
        environment["PYTHONPATH"] = os.pathsep.join(python_path)
    try:
        result = process.run([program, "-c", PROBE, *names], PROBE_LIMITS, env=environment, cwd=Path("/"))
        answer = json.loads(result.stdout) if result.code == 0 else None
    except (OSError, LimitExceededError, ValueError):
        return None
    if answer is None:
        return None
    modules = {name: tuple(map(Path, places)) for name, places in answer["modules"].items()}
    return PythonEnvironment(modules, answer["distributions"])


def is_installed(path: Path) -> bool:
    """Return whether a module is in a folder of installed packages."""
    return not INSTALLED_FOLDERS.isdisjoint(path.parts)
