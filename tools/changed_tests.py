"""Print the tests that notice soonest whether a change is wrong: `make test-changed` runs them in seconds.

python -m tools.changed_tests [REV]: for each module that differs from a commit (default: HEAD), the test files that
import it, until they have as many lines as run in some seconds, and changed tests. Tests of the module's own package,
and of its words, come first.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "generator"
MOST_LINES = 700
"""Of test files for one module: lines stand for seconds, which differ between machines."""
OTHERS = {"base/launcher": "tests/launcher", "trainer": "tests/trainer"}
"""Tests of what other programs run: a folder of sources, and that of its tests."""


def changed_files(revision: str) -> Iterator[Path]:
    """Yield the files that differ from a commit, new ones included."""
    for command in (("diff", "--name-only", revision), ("ls-files", "--others", "--exclude-standard")):
        listed = subprocess.run(("git", *command, "-z"), cwd=ROOT, check=True, capture_output=True, text=True)
        yield from (ROOT / name for name in listed.stdout.split("\0") if name.endswith(".py"))


def imported(test: Path) -> frozenset[str]:
    """Return the dotted names that a test file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    return frozenset(names)


def tests_of(module: Path, importers: dict[Path, frozenset[str]]) -> Iterator[Path]:
    """Yield the tests of a module, until they have enough lines; at least one, if any imports its package."""
    name = ".".join(module.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
    package = name.split(".")[1]
    direct = [test for test, names in importers.items() if name in names]
    near = [test for test in importers if test.parent.name == package]
    left = MOST_LINES
    words = {*module.stem.split("_")}
    for test in sorted(
        direct or near,
        key=lambda test: (test.parent.name != package, words.isdisjoint(test.stem.split("_")), size(test)),
    ):
        if left < MOST_LINES and size(test) > left:
            return
        left -= size(test)
        yield test


def size(test: Path) -> int:
    """Return the number of lines of a test file."""
    return test.read_bytes().count(b"\n")


def main() -> int:
    """Print the tests, one a line."""
    tests = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "e2e" not in path.parts]
    importers = {test: imported(test) for test in tests}
    chosen: dict[Path, None] = {}
    for file in changed_files(sys.argv[1] if len(sys.argv) > 1 else "HEAD"):
        place = file.relative_to(ROOT).as_posix()
        if file in importers:
            chosen[file] = None
        elif file.is_relative_to(SOURCES) and file.is_file():
            chosen |= dict.fromkeys(tests_of(file, importers))
        for folder, own in OTHERS.items():
            if place.startswith(f"{folder}/"):
                word = file.stem.rpartition("_")[2]
                chosen |= dict.fromkeys(
                    test for test in tests if own in test.as_posix() and word in test.stem
                )
    for test in chosen:
        print(test.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
