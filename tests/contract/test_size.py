"""benchmarks/size.py counts each file once, and every derived file that it lists has a command that writes it."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks import size
from benchmarks.size import DERIVED, Derived

ROOT = Path(__file__).parents[2]
OTHER_PROGRAMS = {"go", "npm"}


def command_exists(command: str) -> bool:
    """Tell whether this repository has the target, the module, the script or the command of a command line."""
    match [word for word in shlex.split(command) if not word.startswith("--")]:
        case ["make", target]:
            place, wanted = ROOT / "Makefile", f"\n{target}: "
        case ["python", "-m", "pytest", path]:
            place = next((ROOT / path).glob("test_*.py"), ROOT / path)
            wanted = 'getoption("--update-golden")'
        case ["python", "-m", module]:
            place, wanted = ROOT / f"{module.replace('.', '/')}.py", ""
        case ["python", script, *_]:
            place, wanted = ROOT / script, ""
        case ["sweep", *verbs]:
            place, wanted = ROOT / "docs/commands.md", f"\n### `sweep {' '.join(verbs)}"
        case [program, *_]:
            return program in OTHER_PROGRAMS
    return place.is_file() and wanted in place.read_text()


@pytest.mark.parametrize("entry", DERIVED, ids=lambda entry: entry.paths)
def test_derived_files_exist_with_their_command_and_their_test(entry: Derived) -> None:
    assert size.derived_files(entry, size.tracked_files(ROOT)) != ()
    assert command_exists(entry.command)
    assert entry.test is None or (ROOT / "tests" / entry.test).is_file()


def test_each_lock_is_written_by_the_command_and_pins_what_the_package_allows() -> None:
    written = re.findall(r"-o (locks/\S+\.lock)$", (ROOT / "locks/compile.sh").read_text(), re.MULTILINE)
    tracked = {path for path in size.tracked_files(ROOT) if path.endswith(".lock")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = dict(re.findall(r"^(\S+)==([^\s;]+)", (ROOT / "locks/sweep.lock").read_text(), re.MULTILINE))
    extras = [project["optional-dependencies"][name] for name in ("adaptive", "bayes", "bucket", "sampling")]
    requirements = [Requirement(text) for texts in (project["dependencies"], *extras) for text in texts]

    assert sorted(tracked) == sorted(written)
    assert [
        str(one)
        for one in requirements
        if not one.specifier.contains(pins.get(canonicalize_name(one.name), "0"))
    ] == []
