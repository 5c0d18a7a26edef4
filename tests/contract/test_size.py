"""benchmarks/size.py counts each file once, and every derived file that it lists has a command that writes it."""

import re
import shlex
import subprocess
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


def test_derived_files_are_not_counted_as_written_by_hand(tmp_path: Path) -> None:
    for path, text in {
        "generator/sweepledger/top.py": "A = 1\n",
        "generator/sweepledger/part/module.py": "def one() -> int:\n    return 1\n",
        "generator/sweepledger/schemas/sweep.schema.json": '{"properties": {"name": {}}}\n',
        "generator/sweepledger/schemas/settings.schema.json": "{}\n",
        "generator/sweepledger/contract/schemas/custom.json": "{}\n",
        "base/launcher/v1/launch.py": "A = 1\n",
        "base/collector/v1/hook.sh": "exit 0\n",
        "docs/commands.md": "### `sweep cluster data PATH`\n\n### `sweep cluster pin NAME`\n\n### `sweep run NAME`\n",
        "docs/problems.md": "### `a-code`\n",
        "docs/glossary.md": "| term | meaning |\n|---|---|\n| spec | a file |\n",
        "docs/decisions/0001-one.md": "One decision.\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    report = size.report(tmp_path)

    files = {name: part["files"] for name, part in (report["product"] | report["pages"]).items()}
    assert {name: count for name, count in files.items() if count} == {
        "generator, Python": 2,
        "launcher": 1,
        "base, other scripts": 1,
        "total": 4,
        "decision records": 1,
        "docs": 2,
    }
    assert {name: package["files"] for name, package in report["packages"].items()} == {
        "modules of the top": 1,
        "part": 1,
    }
    assert list(report["concepts"].values()) == [1, 0, 1, 2, 3, 1]
    assert list(report["as_find_counts"].values()) == [2, 3, 2, 0, 28]
    assert "docs/commands.md" in size.text_of(report)
