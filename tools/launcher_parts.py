"""What the package has in common with the launcher, from its source: `python -m tools.launcher_parts`.

The launcher runs without the package, and the package cannot import it. What both must do alike is stated there; this
copies it, with all that it needs, into a module of the package.
"""

import ast
import symtable
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAUNCHER = ROOT / "base/launcher/v1"
MODULE = ROOT / "generator/sweepledger/reader/launcher_parts.py"
NAMES = ("ALL", "LONGEST_MATCH", "Refused", "SPREAD", "Stream", "count_ways", "fields", "spread")
"""What the package uses."""
HEAD = '''"""What the launcher and the package do alike, copied from the former by `python -m tools.launcher_parts`."""

from __future__ import annotations
'''


def definitions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield each name that a module defines or imports, with its statement."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name, statement
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name, statement) for alias in statement.names)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            names = (part for part in ast.walk(statement) if isinstance(part, ast.Name))
            yield from ((name.id, statement) for name in names if isinstance(name.ctx, ast.Store))


def globals_of(table: symtable.SymbolTable) -> Iterator[str]:
    """Yield the names of a module that a part of it reads."""
    is_top = table.get_type() == "module"
    yield from (symbol.get_name() for symbol in table.get_symbols() if is_top or symbol.is_global())
    for child in table.get_children():
        yield from globals_of(child)


def parts_in_order() -> Iterator[str]:
    """Yield the text of each part of the launcher after those that it imports, without these imports."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(LAUNCHER.glob("launch_*.py"))}
    imports = {
        part: [
            node
            for node in ast.parse(text).body
            if isinstance(node, ast.ImportFrom) and (node.module in texts or node.module == "__future__")
        ]
        for part, text in texts.items()
    }
    needed = {
        part: [str(node.module) for node in nodes if node.module in texts] for part, nodes in imports.items()
    }
    for part in TopologicalSorter(needed).static_order():
        lines = texts[part].splitlines()
        for node in imports[part]:
            lines[node.lineno - 1 : node.end_lineno] = [""] * (
                (node.end_lineno or node.lineno) - node.lineno + 1
            )
        yield "\n".join(lines)


def text() -> str:
    """Return the module."""
    source = "\n".join(parts_in_order())
    lines = source.splitlines()
    stated = dict(definitions(ast.parse(source)))
    needed: dict[str, ast.stmt] = {}
    left = list(NAMES)
    while left:
        name = left.pop()
        if name in needed or name not in stated:
            continue
        statement = needed[name] = stated[name]
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            left += globals_of(symtable.symtable(ast.unparse(statement), name, "exec"))
    imports, parts = set[str](), dict[int, str]()
    for name, statement in needed.items():
        if isinstance(statement, ast.ImportFrom):
            imports.add(f"from {statement.module} import {name}")
        elif isinstance(statement, ast.Import):
            imports.add(f"import {name}")
        else:
            apart = "" if isinstance(statement, ast.Assign | ast.AnnAssign) else "\n\n"
            parts[statement.lineno] = apart + "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
    return "\n".join((HEAD, *sorted(imports), "", *(parts[line] for line in sorted(parts)), ""))


if __name__ == "__main__":
    MODULE.write_text(text(), encoding="utf-8")
