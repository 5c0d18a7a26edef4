"""Which module imports which, and the circles in that."""

import ast
from collections.abc import Hashable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def edges(folder: str, trees: Mapping[Path, ast.Module]) -> dict[Path, set[Path]]:
    """Return the modules that each module imports, also inside functions; paths as in `trees`."""
    root = Path(folder).parent
    names = {_dotted(path.relative_to(root)): path for path in trees}
    return {path: _imported(tree, names) - {path} for path, tree in trees.items()}


def cycles(graph: Mapping[Node, set[Node]]) -> list[list[Node]]:
    """Return one circle of the graph, or nothing where it has none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [error.args[1]]
    return []


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.Module, names: Mapping[str, Path]) -> set[Path]:
    paths = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                target = names.get(f"{node.module}.{alias.name}") or names.get(node.module)
                if target:
                    paths.add(target)
    return paths
