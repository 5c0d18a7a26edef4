"""The import picture of docs/architecture.md, one test a sentence."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parent.parent
GENERATOR = ROOT / "generator"

FLOORS = ("errors problems", "structs", "formats", "reader", "siblings", "commands", "cli")
SIBLINGS = {"spec", "exchange", "search", "plan", "render", "policy", "results", "repo", "engine"}
OWNERS = {
    "ruamel": {"reader"},
    "jsonschema": {"spec"},
    "jsonschema_rs": {"policy"},
    "yaml": {"formats"},
    "jinja2": {"results"},
    "git": {"repo"},
    "typer": {"cli"},
    "click": {"cli"},
    "rich": {"cli"},
    "torch": {"search"},  # one place, which counts its threads
    "numpy": {"search"},
    "scipy": {"search"},
    "optuna": {"search"},
    "cmaes": {"search"},
}
MODULE_LINES = 300
FUNCTION_LINES = 40
MEDIAN_MODULE_LINES = 120
MEDIAN_FUNCTION_LINES = 10


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def package(dotted: str) -> str:
    """Name the room of the generator that a dotted import goes to."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 else ""


def room(path: Path) -> str:
    return path.relative_to(GENERATOR).parts[0].removesuffix(".py")


def floor(name: str) -> int:
    if name in {"errors", "problems", "untrusted"}:
        return 0
    return FLOORS.index("siblings" if name in SIBLINGS else name)


@pytest.mark.parametrize("path", modules(GENERATOR), ids=lambda path: path.relative_to(GENERATOR).as_posix())
def test_imports_go_downwards_and_siblings_are_unaware_of_each_other(path: Path) -> None:
    here = room(path)
    for name in imports(path):
        if not name.startswith("generator") or here == "__init__":
            continue
        there = package(name)
        if there in {"__version__", "", here} or {here, there} == {"errors", "problems"}:
            continue
        assert floor(there) < floor(here), f"{here} must not import {name}"


@pytest.mark.parametrize("path", modules(GENERATOR), ids=lambda path: path.relative_to(GENERATOR).as_posix())
def test_each_third_party_library_has_one_owner(path: Path) -> None:
    for name in imports(path):
        library = name.partition(".")[0]
        if library in OWNERS:
            assert room(path) in OWNERS[library], f"{library} belongs to {OWNERS[library]}"


@pytest.mark.parametrize("path", modules(ROOT / "trainer"), ids=lambda path: path.name)
def test_the_trainer_knows_nothing_of_the_generator_and_its_libraries(path: Path) -> None:
    foreign = {"generator", "git", "yaml", "ruamel", "jinja2", "jsonschema", "typer", "rich", "kubernetes"}

    assert not {name.partition(".")[0] for name in imports(path)} & foreign


def test_the_launcher_needs_the_standard_library_alone() -> None:
    found = {name.partition(".")[0] for name in imports(ROOT / "base/launcher/v1/launch.py")}

    assert found <= sys.stdlib_module_names


@pytest.mark.parametrize("path", modules(GENERATOR), ids=lambda path: path.relative_to(GENERATOR).as_posix())
def test_only_the_command_line_prints(path: Path) -> None:
    # The warden is a program of its own, and reports to the engine through its standard output.
    if room(path) == "cli" or path.name == "warden.py":
        return
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]

    assert not [call for call in calls if isinstance(call, ast.Name) and call.id == "print"]


@pytest.mark.parametrize("path", modules(GENERATOR), ids=lambda path: path.relative_to(GENERATOR).as_posix())
def test_only_the_rims_start_processes(path: Path) -> None:
    if room(path) in {"repo", "engine", "cli"}:
        return
    assert not {name.partition(".")[0] for name in imports(path)} & {"subprocess", "shutil", "socket"}


@pytest.mark.parametrize(
    "path", modules(GENERATOR) + modules(ROOT / "trainer"), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_modules_and_functions_fit_on_a_page_and_say_what_they_are(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)

    assert ast.get_docstring(tree), "every module says what lives in it"
    assert text.count("\n") <= MODULE_LINES
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert lines_of(node) <= FUNCTION_LINES, f"{node.name} has {lines_of(node)} lines"


def test_the_typical_room_is_small() -> None:
    paths = modules(GENERATOR) + modules(ROOT / "trainer")
    functions = [
        node
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]

    assert median(path.read_text().count("\n") for path in paths) <= MEDIAN_MODULE_LINES
    assert median(lines_of(node) for node in functions) <= MEDIAN_FUNCTION_LINES


def lines_of(node: ast.FunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_lock_files_hold_no_index_host_link_or_path() -> None:
    for lock in sorted((ROOT / "locks").glob("*.lock")):
        for line in lock.read_text().splitlines():
            assert "://" not in line
            assert not line.lstrip().startswith(("-", "/", ".")) or line.lstrip().startswith("--hash=sha256:")
            assert " @ " not in line


def test_every_pinned_package_has_its_hashes() -> None:
    for lock in sorted((ROOT / "locks").glob("*.lock")):
        pins = lock.read_text().replace("\\\n", " ").splitlines()
        assert pins
        assert all("==" in pin and "--hash=sha256:" in pin for pin in pins)
