"""The import rules of docs/architecture.md: one test per sentence, and one parse per file for all of them."""

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeVar

import pytest

from sweepledger import controllers, distributions, stopping
from sweepledger.structs import methods
from sweepledger.structs.settings import ResultsStore

Node = TypeVar("Node", bound=Hashable)
ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "generator/sweepledger"
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")

LAYERS = tuple(
    set(names.split())
    for names in (
        "errors extensions garbage_collection problems safe_open process process_tree quantiles storage",
        "model",
        "structs",
        "formats",
        "reader",
        "expressions distributions stopping controllers",
        "spec exchange search plan render contract results repo engine stores bucket",
        "site",
        "operations",
        "cli",
        "verbs",
        "api",
    )
)
"""From the lowest; a package imports only packages of lower layers, so no sibling imports another."""

OWNERS = {
    "ruamel": {"reader"},
    "jsonschema": {"spec"},
    "cel_expr_python": {"contract"},
    "jsonschema_rs": {"contract", "spec"},
    "yaml": {"formats", "reader"},  # the reader asks it how YAML 1.1 reads a plain scalar
    "jinja2": {"operations", "results", "site"},  # each has templates of its own
    "git": {"repo"},
    "typer": {"cli", "verbs"},
    "click": {"cli"},
    "rich": {"cli", "verbs"},
    "torch": {"search"},  # one place, which counts its threads
    "numpy": {"results", "search"},  # results: the least squares of `sweep compare --explain`
    "scipy": {"distributions"},
    "obstore": {"bucket"},
    "optuna": {"search", "exchange", "stores"},  # exchange reads studies, stores write them
    "cmaes": {"search"},
    "pandas": {"api"},
    "polars": {"api"},
}
MODULES_PER_FOLDER = 21
COPY = "launcher_parts.py"
"""Its classes are the launcher's."""
VERBS = Path("generator/sweepledger/verbs")
"""It has as many modules as `sweep` has commands."""


WITH_ALL_SETTINGS = {
    "operations/repository/rendered_manifests.py",  # hands them to the rules for pods
    "operations/scaffold/bootstrap.py",  # hands them to the tree of the platform
    "contract/batch.py",
    "render/platform/tree.py",  # divides them among the files of the platform
    "spec/parser.py",  # hands them to the rules for specs
}
"""Modules below `verbs` with a function that takes all settings; any other takes the groups or values that it needs."""


FACADE = PACKAGE / "__init__.py"
"""Names the Python API, and loads it on request: it is above all layers, although every module's import runs it."""


@cache
def sources(folder: str) -> Mapping[Path, ast.Module]:
    """Parse every module below a folder, once for all tests; not the facade."""
    paths = sorted(path for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts)
    paths = [path for path in paths if path != FACADE]
    return {path.relative_to(ROOT): parsed(path) for path in paths}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))


@cache
def imports(tree: ast.Module) -> tuple[str, ...]:
    names: list[str] = []
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(names)


def wrong_imports(is_wrong: Callable[[Path, str], bool], folder: str = "generator/sweepledger") -> list[str]:
    """Return the imports of modules below a folder for which a rule says so, given path and imported name."""
    return [
        f"{path} imports {name}"
        for path, tree in sources(folder).items()
        for name in imports(tree)
        if is_wrong(path, name)
    ]


@cache
def import_graph(folder: str) -> Mapping[Path, set[Path]]:
    """Return the modules that each module imports, also inside functions."""
    modules = {_dotted(path.relative_to(Path(folder).parent)): path for path in sources(folder)}
    graph = {}
    for path, tree in sources(folder).items():
        targets = {modules.get(name) or modules.get(name.rpartition(".")[0]) for name in imports(tree)}
        graph[path] = {target for target in targets if target} - {path}
    return graph


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def cycles(graph: Mapping[Node, set[Node]]) -> list[list[Node]]:
    """Return one circle of the graph, or nothing where it has none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [error.args[1]]
    return []


def package(path: Path) -> str:
    """Return the part of the package that a file belongs to: `search`, `cli`, `errors` …"""
    return (ROOT / path).relative_to(PACKAGE).parts[0].removesuffix(".py")


def layer(name: str) -> int:
    (number,) = [number for number, names in enumerate(LAYERS) if name in names]
    return number


def test_every_part_of_the_package_has_a_layer() -> None:
    parts = {package(path) for path in sources("generator/sweepledger")}

    assert parts == set().union(*LAYERS)


def test_imports_go_to_lower_layers_only() -> None:
    def is_wrong(path: Path, name: str) -> bool:
        top, _, below = name.partition(".")
        part = below.partition(".")[0]
        if top == "sweepledger" and part not in {"", "__version__", package(path)}:
            return layer(part) >= max(layer(package(path)), 1)
        return top in {"benchmarks", "tests", "tools"}

    assert wrong_imports(is_wrong) == []


def test_a_function_takes_the_groups_of_settings_that_it_needs() -> None:
    takers = {
        (ROOT / path).relative_to(PACKAGE).as_posix()
        for path, tree in sources("generator/sweepledger").items()
        for node in nodes(tree)
        if isinstance(node, ast.arg) and node.annotation is not None
        if "Settings" in re.findall(r"\w+", ast.unparse(node.annotation))
    }

    assert {path for path in takers if not path.startswith("verbs/")} == WITH_ALL_SETTINGS


@pytest.mark.parametrize("folder", ["generator/sweepledger", "trainer"])
def test_no_modules_import_each_other_in_a_circle(folder: str) -> None:
    assert cycles(import_graph(folder)) == []


def test_no_folders_of_a_folder_import_each_other_in_a_circle() -> None:
    graph = import_graph("generator/sweepledger")
    folders = {path.parent for path in sources("generator/sweepledger")}
    wrong = []
    for folder in sorted(folders):
        depth = len(folder.parts)
        children: dict[str, set[str]] = {}
        for source, imported in graph.items():
            if not source.is_relative_to(folder) or source.name == "__init__.py":
                continue
            for target in imported:
                if target.is_relative_to(folder) and len(target.parts) > depth:
                    here, there = (path.parts[depth].removesuffix(".py") for path in (source, target))
                    if here != there and "__init__" not in {here, there}:
                        children.setdefault(here, set()).add(there)
        wrong += [f"{folder}: {circle}" for circle in cycles(children)]

    assert wrong == []


def diagram(name: str) -> list[set[str]]:
    """Return the lines of a diagram of docs/architecture.md, from the highest layer."""
    match = re.search(rf"^```{name}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert match, name
    return [set(line.split()) for line in match[1].splitlines()]


def test_the_page_shows_the_layers() -> None:
    assert diagram("layers") == [set(names) for names in reversed(LAYERS)]


def test_the_page_shows_what_each_package_imports() -> None:
    imported: dict[str, set[str]] = {name: set() for name in set().union(*LAYERS)}
    for path, tree in sources("generator/sweepledger").items():
        modules = (name.split(".")[1] for name in imports(tree) if name.startswith("sweepledger."))
        imported[package(path)] |= set(modules) & imported.keys() - {package(path)}

    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \|([^|]*)\|$", PAGE, re.MULTILINE)

    assert {name: sorted(filter(None, cell.strip().split(", "))) for name, cell in rows} == {
        name: sorted(names) for name, names in imported.items()
    }, "update the table of packages in docs/architecture.md"


def test_imports_between_the_folders_of_operations_go_down_as_the_page_shows() -> None:
    layers = diagram("operations")
    folders = {path.parent.name for path in sources("generator/sweepledger/operations")} - {"operations"}
    assert set().union(*layers) == folders | {"verbs"}

    def command_layer(module: str) -> int:
        name = module if module in folders else "verbs"
        (number,) = [number for number, names in enumerate(layers) if name in names]
        return number

    def is_wrong(path: Path, name: str) -> bool:
        folder, parts = path.parent.name, name.split(".")
        if parts[:2] != ["sweepledger", "operations"] or parts[2] == folder:
            return False
        return 0 < command_layer(folder) >= command_layer(parts[2])

    assert wrong_imports(is_wrong, "generator/sweepledger/operations") == []


def test_the_paths_on_the_page_exist() -> None:
    paths = re.findall(r"`([\w./-]+(?:/|\.py|\.md|\.json|\.yaml))`", PAGE)
    generated = {
        "overlays/active/",
        "overlays/archive/",
        "clusters/",
        "active/",
        "archive/",
        "sweeps/lr.yaml",
    }

    assert len(paths) > len(generated)
    assert [
        path
        for path in paths
        if path not in generated and not (ROOT / path).exists() and not (PACKAGE / path).exists()
    ] == []


def test_each_third_party_library_has_one_owner() -> None:
    def is_wrong(path: Path, name: str) -> bool:
        return package(path) not in OWNERS.get(name.partition(".")[0], {package(path)})

    assert wrong_imports(is_wrong) == []


def test_the_trainer_imports_nothing_of_the_package_or_its_libraries() -> None:
    foreign = {"sweepledger", "kubernetes", *OWNERS} - {"torch", "numpy"}

    assert wrong_imports(lambda _, name: name.partition(".")[0] in foreign, "trainer") == []


def test_the_facade_and_what_a_users_script_calls_need_the_standard_library_alone() -> None:
    script = sources("generator/sweepledger")[Path("generator/sweepledger/api/script.py")]
    facade = ast.parse(FACADE.read_text())
    facade.body = [node for node in facade.body if not isinstance(node, ast.If)]  # for type checkers

    for tree in (script, facade):
        assert {name.partition(".")[0] for name in imports(tree)} <= sys.stdlib_module_names


def test_the_launcher_needs_the_standard_library_alone() -> None:
    programs = sources("base/launcher")
    names = {name.partition(".")[0] for tree in programs.values() for name in imports(tree)}
    known = {*sys.stdlib_module_names, "_sha2", "_sha256", "sre_parse"}  # not in every version

    assert names - known <= {path.stem for path in programs}


def test_only_the_command_line_and_the_python_api_print() -> None:
    wrong = [
        str(path)
        for path, tree in sources("generator/sweepledger").items()
        if package(path) not in {"cli", "verbs", "api"}
        for node in nodes(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]

    assert wrong == []


def test_only_repo_engine_and_cli_start_processes() -> None:
    starting = {"repo", "engine", "cli", "verbs", "process", "storage"}

    def is_wrong(path: Path, name: str) -> bool:
        return package(path) not in starting and name.partition(".")[0] in {"subprocess", "shutil", "socket"}

    assert wrong_imports(is_wrong) == []


def test_no_two_public_classes_have_the_same_name() -> None:
    written = (tree for path, tree in sources("generator/sweepledger").items() if path.name != COPY)
    names = Counter(node.name for tree in written for node in tree.body if isinstance(node, ast.ClassDef))

    assert [name for name, number in names.items() if number > 1 and not name.startswith("_")] == []


def test_no_folder_is_crowded() -> None:
    folders = [path.parent for path in sources("generator/sweepledger") if path.name != "__init__.py"]
    crowded = [folder for folder in sorted(set(folders)) if folders.count(folder) > MODULES_PER_FOLDER]

    assert [folder for folder in crowded if folder != VERBS] == []


def test_lock_files_pin_packages_with_their_hashes_and_hold_no_index_host_link_or_path() -> None:
    for lock in sorted((ROOT / "locks").glob("*.lock")):
        pins = lock.read_text().replace("\\\n", " ").splitlines()
        assert pins
        for pin in pins:
            assert re.fullmatch(
                r"[\w.\[\],-]+==[^ @]+( +; [^:@/]+)?( +--hash=sha256:[0-9a-f]{64})+ *", pin
            ), pin


INSTANCES = {
    "distributions": {name for module in distributions.MODULES for name in module.FORMS},
    "stopping": {*stopping.TYPES} - {"patience", "target"},  # these are keys as well
    "controllers": {*controllers.GITOPS},
    "structs/methods.py": {*methods.SAMPLERS, *methods.METHODS},
}
"""Names of instances, and what alone may say them."""
FOREIGN = ("exchange/", "spec/suggestions.py")
"""Translates names of other tools, which are often the same."""


def test_no_other_module_names_a_store_of_records() -> None:
    for path, tree in sources("generator/sweepledger").items():
        if path.as_posix().endswith("structs/settings/stores.py"):
            continue
        named = [
            node
            for node in nodes(tree)
            if isinstance(node, ast.Attribute) and node.attr in ResultsStore.__members__
        ]
        assert not [ast.unparse(node) for node in named if ast.unparse(node).startswith("ResultsStore.")], (
            path
        )


COMPARED = ast.Compare | ast.MatchValue


def test_no_other_module_asks_for_an_instance() -> None:
    modules = tuple(
        f"{module.__name__}." for module in (*distributions.MODULES, *stopping.MODULES, *controllers.MODULES)
    )
    for path, tree in sources("generator/sweepledger").items():
        file = path.as_posix().removeprefix("generator/sweepledger/")
        if file.startswith(FOREIGN):
            continue
        compared = [node for node in nodes(tree) if isinstance(node, COMPARED)]
        named = {leaf.value for node in compared for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)}
        for owner, names in INSTANCES.items():
            assert file.startswith(owner) or not named & names, f"{file} asks for an instance by its name"
        if package(path) not in {"distributions", "stopping", "controllers"}:
            imported = [name for name in imports(tree) if f"{name}.".startswith(modules)]
            assert not imported, f"{file} imports the module of an instance"


NAMES_OF_CONTROLLERS = re.compile("argo|flux", re.IGNORECASE)
WITH_CONTROLLERS = {
    *("structs/settings/__init__.py", "structs/settings/platform.py"),  # the keys of the settings
    "structs/platform.py",  # what one of them calls a git host
}


def test_no_other_module_names_a_controller() -> None:
    root = ROOT / "generator/sweepledger"
    naming = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if path.parent.name != "controllers" and NAMES_OF_CONTROLLERS.search(path.read_text(encoding="utf-8"))
    }

    assert naming == WITH_CONTROLLERS
